//! What a store around another store does most of the time: hands a question on.
//!
//! Invariant: a new question of the `Store` port is written here once, and every store around another one has it. Deliberately
//! absent: `transact`, `view` and `claim_due`, which are what such stores are made for, and the simulator's store, which
//! names each call for its faults.

/// The questions of the [`Store`](onceward_domain::ports::store::Store) port, but for `view`, handed on to the store that the
/// expression gives; each answer goes through the function that is named, if one is.
///
/// ```
/// use std::sync::Arc;
///
/// use onceward_domain::due::{ClaimRequest, Claimed};
/// use onceward_domain::facts::{Facts, Need};
/// use onceward_domain::ports::Answer;
/// use onceward_domain::ports::store::{Store, Work};
///
/// struct Around(Arc<dyn Store>);
///
/// impl Store for Around {
///     fn transact(&self, work: Work) -> Answer<'_, ()> {
///         self.0.transact(work)
///     }
///
///     fn view(&self, need: Need) -> Answer<'_, Facts> {
///         self.0.view(need)
///     }
///
///     fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
///         self.0.claim_due(request)
///     }
///
///     onceward_testkit::pass_questions_on!(self => self.0);
/// }
/// ```
#[macro_export]
macro_rules! pass_questions_on {
    ($this:ident => $inner:expr) => {
        $crate::pass_questions_on!($this => $inner, ::std::convert::identity);
    };
    ($this:ident => $inner:expr, $through:path) => {
        $crate::pass_questions_on! { @each $this, $inner, $through;
            next_due(lane: ::onceward_domain::due::Lane) -> Option<::onceward_domain::time::Timestamp>;
            find_due(
                lane: ::onceward_domain::due::Lane,
                purchase: ::onceward_domain::id::PurchaseId
            ) -> Option<::onceward_domain::due::Waiting>;
            list_due(
                lane: ::onceward_domain::due::Lane,
                limit: u32,
                after: Option<::onceward_domain::due::Member>
            ) -> Vec<::onceward_domain::due::Waiting>;
            lanes() -> Vec<::onceward_domain::due::LaneStatus>;
            paused() -> Vec<::onceward_domain::due::Lane>;
            list_skus(
                limit: u32,
                after: Option<::onceward_domain::id::SkuKey>
            ) -> Vec<::onceward_domain::catalogue::Sku>;
            list_orders(
                filter: ::onceward_domain::ports::store::OrderFilter,
                page: ::onceward_domain::ports::store::PageRequest
            ) -> Vec<::onceward_domain::purchase::Purchase>;
            expiries(
                limit: u32,
                after: Option<::onceward_domain::ports::store::Expiring>
            ) -> Vec<::onceward_domain::ports::store::Expiring>;
            list_cases(
                page: ::onceward_domain::ports::store::PageRequest
            ) -> Vec<(i64, ::onceward_domain::payment::Case)>;
            list_notices(
                page: ::onceward_domain::ports::store::PageRequest
            ) -> Vec<(i64, ::onceward_domain::notice::Notice)>;
            aged(
                limit: u32,
                after: ::onceward_domain::retention::Aged
            ) -> Vec<::onceward_domain::retention::Aged>;
            list_groups(
                status: Option<::onceward_domain::machine::group::Group>,
                page: ::onceward_domain::ports::store::PageRequest
            ) -> Vec<::onceward_domain::group::GroupOrder>;
            group_transitions(
                group: ::onceward_domain::id::GroupId
            ) -> Vec<::onceward_domain::group::GroupTransition>;
            list_entries(
                account: ::onceward_domain::id::AccountId,
                page: ::onceward_domain::ports::store::PageRequest
            ) -> Vec<::onceward_domain::credit::Entry>;
            standing(
                account: ::onceward_domain::id::AccountId,
                at: ::onceward_domain::time::Timestamp
            ) -> Option<::onceward_domain::credit::Standing>;
            transitions(
                purchase: ::onceward_domain::id::PurchaseId
            ) -> Vec<::onceward_domain::changes::Transition>;
            tally() -> ::onceward_domain::tally::Tally;
            now() -> ::onceward_domain::time::Timestamp;
        }
    };
    (@each $this:ident, $inner:expr, $through:path;
        $($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&$this $(, $argument: $kind)*) -> ::onceward_domain::ports::Answer<'_, $answer> {
            $through($inner.$name($($argument),*))
        })*
    };
}
