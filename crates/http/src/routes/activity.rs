//! `/v1/activities/{activity_id}`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::json;
use crate::body::Payload;
use crate::dto::activity::{ActivityBody, ActivityView};
use crate::operation::detached;
use crate::params::PathIds;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::values::IdText;
use onceward::operations::catalogue::{self, Put};

/// Shows an activity.
#[utoipa::path(
    get, path = "/v1/activities/{activity_id}", tag = "flash sale", operation_id = "get_activity",
    params(("activity_id" = IdText<'_>, Path)),
    responses(
        (status = 200, description = "The activity.", body = ActivityView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn get(State(state): State<AppState>, ids: PathIds) -> Result<Response, Problem> {
    let activity = catalogue::activity(&state.engine, &ids.activity()?).await?;
    Ok(json(StatusCode::OK, &ActivityView::from(&activity)))
}

/// Puts an activity: makes it, or confirms it where it is the same.
#[utoipa::path(
    put, path = "/v1/activities/{activity_id}", tag = "flash sale", operation_id = "put_activity",
    params(("activity_id" = IdText<'_>, Path)),
    request_body = ActivityBody<'_>,
    responses(
        (status = 201, description = "It was made.", body = ActivityView),
        (status = 200, description = "It was there, with the same values.", body = ActivityView),
        (status = 409, description = "`conflict`: it is there with other values.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn put(
    State(state): State<AppState>,
    ids: PathIds,
    payload: Payload,
) -> Result<Response, Problem> {
    let id = ids.new_activity()?;
    let activity = payload.parse::<ActivityBody<'_>>()?.into_activity(id)?;
    let view = ActivityView::from(&activity);
    let put = detached(async move { catalogue::put_activity(&state.engine, activity).await }).await?;
    Ok(json(status_of(&put), &view))
}

/// 201 for what is new.
pub(super) fn status_of(put: &Put) -> StatusCode {
    match put {
        Put::Created => StatusCode::CREATED,
        Put::Unchanged | Put::Changed => StatusCode::OK,
    }
}
