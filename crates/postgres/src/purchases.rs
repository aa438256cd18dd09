//! Loading purchases: by id, and by what buyers hold.
//!
//! Invariants: a purchase always comes with all its lines; what a buyer holds comes oldest first, each once, also where it was
//! asked for by id as well.

use std::collections::{HashMap, HashSet};

use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::purchase::{Line, Purchase};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::failure::defect;
use crate::link::Link;
use crate::load::{Kind, Wanted};
use crate::open::Shared;
use crate::pipeline::{Questions, params};
use crate::queries;
use crate::rows::{self, column, get, number, price, uuid_of};

/// Rows of purchases, before it is known what they name.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) by_id: Vec<Row>,
    pub(crate) of_buyers: Vec<Row>,
}

/// Asks for the purchases of a need.
pub(crate) async fn ask<'a>(questions: &mut Questions<'a, Kind>, wanted: &Wanted<'a>) -> Result<(), Error> {
    let Wanted { need, skus, .. } = wanted;
    if !need.purchases.is_empty() {
        let ids: Vec<Uuid> = need.purchases.iter().copied().map(uuid_of).collect();
        questions.ask(Kind::Purchases, queries::PURCHASE_BY_IDS, params![ids]).await?;
    }
    if !need.buyers.is_empty() {
        // The number of a SKU that is not there finds nobody.
        let sku_refs: Vec<Option<i32>> = need.buyers.iter().map(|(key, _)| skus.get(key).copied()).collect();
        let users: Vec<&str> = need.buyers.iter().map(|(_, user)| user.as_str()).collect();
        let both = (params![users.clone(), sku_refs.clone()], params![users, sku_refs]);
        questions.ask(Kind::Buyers, queries::PURCHASE_OF_BUYERS, both.0).await?;
        questions.ask(Kind::Buyers, queries::PURCHASE_DIRECT_OF_BUYERS, both.1).await?;
    }
    Ok(())
}

/// Makes purchases of rows, with whatever else must be read for that.
pub(crate) async fn resolve(
    shared: &Shared,
    link: &Link,
    (found, need): (Found, &Need),
    facts: &mut Facts,
) -> Result<(), Error> {
    let Found { by_id, of_buyers } = found;
    let mut held: Vec<Vec<(i64, onceward_domain::id::PurchaseId)>> = vec![Vec::new(); need.buyers.len()];
    for row in &of_buyers {
        let asked: i64 = get(row, column::ASKED)?;
        let index = usize::try_from(asked - 1).ok().filter(|index| *index < held.len());
        let index = index.ok_or_else(|| defect(format!("buyer {asked} was not asked for")))?;
        held[index].push((get(row, column::SEQ)?, rows::purchase_id(row, column::ID)?));
    }
    let mut known = HashSet::new();
    let mut distinct = Vec::with_capacity(by_id.len() + of_buyers.len());
    for row in by_id.into_iter().chain(of_buyers) {
        if known.insert(get::<i64>(&row, column::SEQ)?) {
            distinct.push(row);
        }
    }
    facts.purchases = whole(shared, link, &distinct).await?.into_iter().map(|one| (one.id, one)).collect();
    for ((key, user), mut held) in need.buyers.iter().zip(held) {
        held.sort_unstable_by_key(|(handle, _)| *handle);
        held.dedup();
        let ids = held.into_iter().map(|(_, id)| id).collect();
        facts.buyers.insert((key.clone(), user.clone()), ids);
    }
    Ok(())
}

/// Purchases from their rows, in the same order.
pub(crate) async fn whole(shared: &Shared, link: &Link, rows: &[Row]) -> Result<Vec<Purchase>, Error> {
    let mut direct: HashMap<i64, Option<i16>> = HashMap::new();
    let mut sku_refs = Vec::with_capacity(rows.len());
    for row in rows {
        match get::<Option<i32>>(row, column::SKU_REF)? {
            Some(sku_ref) => sku_refs.push(sku_ref),
            None => drop(direct.insert(get(row, column::SEQ)?, get(row, column::CURRENCY)?)),
        }
    }
    let line_rows = if direct.is_empty() {
        Vec::new()
    } else {
        let handles: Vec<i64> = direct.keys().copied().collect();
        link.rows("loading the lines of orders", queries::ORDER_LINE_OF_PURCHASES, params![handles]).await?
    };
    for row in &line_rows {
        sku_refs.push(get(row, 1)?);
    }
    let keys = shared.refs.sku_keys(link, sku_refs.into_iter()).await?;
    let key_of = |sku_ref: i32| {
        keys.get(&sku_ref)
            .cloned()
            .ok_or_else(|| defect(format!("a row names SKU {sku_ref}, which is not there")))
    };
    let mut lines: HashMap<i64, Vec<Line>> = HashMap::with_capacity(direct.len());
    for row in &line_rows {
        let handle: i64 = get(row, 0)?;
        lines.entry(handle).or_default().push(Line {
            key: key_of(get(row, 1)?)?,
            quantity: number(row, 2)?,
            place: get(row, 3)?,
            unit_price: price(get(row, 4)?, direct.get(&handle).copied().flatten())?,
        });
    }
    let one = |row: &Row| {
        let key = get::<Option<i32>>(row, column::SKU_REF)?.map(key_of).transpose()?;
        let apart = lines.get(&get(row, column::SEQ)?).cloned().unwrap_or_default();
        rows::purchase(row, key, apart)
    };
    rows.iter().map(one).collect()
}
