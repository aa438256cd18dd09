//! A callback counts only where its signature holds, inside its window (SE-02). The table of ways in which one does not is
//! beside the code.

use onceward_domain::error::Code;
use onceward_domain::ports::provider::RawCallback;
use onceward_domain::time::{Millis, Timestamp};
use onceward_providers::sandbox::Signer;

const NOW: Timestamp = Timestamp(1_794_355_200_000);
const BODY: &[u8] = b"{}";

fn signed_by(secret: &[u8]) -> Vec<(String, String)> {
    let headers = Signer::new(secret).headers("evt-1", NOW, BODY);
    headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn checked(headers: &[(String, String)], now: Timestamp) -> Result<(), Code> {
    let raw = RawCallback { headers, body: BODY, now };
    Signer::new(b"ours").check(&raw).map(drop).map_err(|error| error.code())
}

#[test]
fn ot_08_se_02_only_what_is_signed_counts() {
    assert_eq!(checked(&signed_by(b"ours"), NOW), Ok(()));
    assert_eq!(checked(&signed_by(b"theirs"), NOW), Err(Code::BadSignature));
}

#[test]
fn ot_08_se_02_only_what_is_fresh_counts() {
    let minutes = |count: i64| NOW.plus(Millis(count * 60_000));
    assert_eq!(checked(&signed_by(b"ours"), minutes(4)), Ok(()));
    assert_eq!(checked(&signed_by(b"ours"), minutes(6)), Err(Code::BadSignature));
}
