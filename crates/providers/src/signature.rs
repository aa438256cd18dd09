//! Signatures of webhooks, in the manner of Standard Webhooks: of the sandbox bank's callbacks, and of our own notices.
//!
//! Three headers: `webhook-id`, `webhook-timestamp` (seconds since 1970) and `webhook-signature`, a list of
//! `v1,<base64>` separated by blanks so that a secret can be changed without a gap. Signed is `id.timestamp.body` with
//! HMAC-SHA256. Invariants (SE-02): nothing of the body is looked at before a signature holds; every signature is
//! compared, in constant time; a time outside the window is refused, so that an old callback cannot be played again.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use onceward_domain::error::{Code, Error};
use onceward_domain::guard::Guard;
use onceward_domain::ports::provider::RawCallback;
use onceward_domain::time::{Millis, Timestamp};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

/// How far a callback's time may be from ours, either way.
pub const WINDOW: Millis = Millis(5 * 60 * 1_000);

const ID: &str = "webhook-id";
const TIMESTAMP: &str = "webhook-timestamp";
const SIGNATURE: &str = "webhook-signature";
const VERSION: &str = "v1,";
/// How a secret in text form begins.
const SECRET_PREFIX: &str = "whsec_";
/// Most signatures of one callback that are compared: more than any change of secrets needs.
const SIGNATURES_LIMIT: usize = 8;

/// Signs callbacks and checks them with one secret.
#[derive(Clone)]
pub struct Signer {
    keyed: Hmac<Sha256>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Signer(secret hidden)")
    }
}

impl Signer {
    /// A signer with this secret.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self { keyed: Hmac::new_from_slice(secret).expect("HMAC takes a key of any length") }
    }

    /// A signer with a secret as people hand it around: `whsec_` and base64, or any other text as it is.
    ///
    /// ```
    /// use onceward_providers::signature::Signer;
    /// assert!(Signer::from_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").is_ok());
    /// assert!(Signer::from_text("whsec_not base64").is_err());
    /// ```
    ///
    /// # Errors
    /// [`Code::Invalid`] for what begins like one and is none. The error does not hold the text.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let Some(encoded) = text.strip_prefix(SECRET_PREFIX) else { return Ok(Self::new(text.as_bytes())) };
        let secret = STANDARD.decode(encoded);
        secret
            .map(|secret| Self::new(&secret))
            .map_err(|_| Error::new(Code::Invalid, "reading a webhook's secret: it is not base64"))
    }

    /// The three headers of a callback.
    #[must_use]
    pub fn headers(&self, event: &str, now: Timestamp, body: &[u8]) -> [(&'static str, String); 3] {
        let seconds = (now.0.div_euclid(1_000)).to_string();
        let signature = STANDARD.encode(self.sign(event, &seconds, body));
        [(ID, event.to_owned()), (TIMESTAMP, seconds), (SIGNATURE, format!("{VERSION}{signature}"))]
    }

    fn sign(&self, event: &str, seconds: &str, body: &[u8]) -> [u8; 32] {
        let mut mac = self.keyed.clone();
        for part in [event.as_bytes(), b".", seconds.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// Checks a callback and answers its id.
    ///
    /// # Errors
    /// [`Code::BadSignature`].
    pub fn check<'a>(&self, callback: &RawCallback<'a>) -> Result<&'a str, Error> {
        let refused = |why: &str| Error::new(Code::BadSignature, format!("checking a callback: {why}"));
        let only = |name: &'static str| {
            only(callback.headers, name).ok_or_else(|| refused(&format!("{name} is not there once")))
        };
        let (event, seconds, signatures) = (only(ID)?, only(TIMESTAMP)?, only(SIGNATURE)?);
        let is_plain = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
        let at = seconds.parse().ok().filter(|_| is_plain);
        let at: i64 = at.ok_or_else(|| refused("its time is not a number of seconds"))?;
        let age = callback.now.0.abs_diff(at.saturating_mul(1_000));
        if !Guard::SignatureIsFresh.holds(age <= WINDOW.0.unsigned_abs()) {
            return Err(refused("its time is outside the window"));
        }
        let expected = self.sign(event, seconds, callback.body);
        let given =
            signatures.split(' ').take(SIGNATURES_LIMIT).filter_map(|text| text.strip_prefix(VERSION));
        let holds =
            given.filter_map(|text| STANDARD.decode(text).ok()).fold(Choice::from(0), |found, one| {
                // No early end: how long this takes must not tell which one came close.
                found | one.ct_eq(&expected[..])
            });
        if Guard::SignatureHolds.holds(bool::from(holds)) {
            Ok(event)
        } else {
            Err(refused("no signature holds"))
        }
    }
}

fn only<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut values = headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value),
        (Some(_), Some(_)) | (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_794_355_200_999);
    const BODY: &[u8] = br#"{"event_id":"evt-1"}"#;

    fn signed() -> Vec<(String, String)> {
        let headers = Signer::new(b"secret").headers("evt-1", NOW, BODY);
        headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn check(headers: &[(String, String)], body: &[u8], now: Timestamp) -> Result<String, Code> {
        let callback = RawCallback { headers, body, now };
        let checked = Signer::new(b"secret").check(&callback);
        checked.map(str::to_owned).map_err(|error| error.code())
    }

    #[test]
    fn se_02_the_example_of_the_standard_holds() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let headers =
            Signer::new(&key).headers("msg_p5jXN8AQM9LWM0D4loKWxJek", Timestamp(1_614_265_330_000), body);
        assert_eq!(headers[2].1, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn se_02_tampered_late_and_doubled_callbacks_are_refused() {
        assert_eq!(check(&signed(), BODY, NOW), Ok("evt-1".to_owned()));
        let with = |name: &str, change: &dyn Fn(&str) -> String| {
            let mut headers = signed();
            for (known, value) in &mut headers {
                if known == name {
                    *value = change(value);
                }
            }
            headers
        };
        let twice: Vec<(String, String)> = signed().into_iter().chain(signed().into_iter().take(1)).collect();
        let table = [
            ("another id", with(ID, &|_| "evt-2".to_owned())),
            ("another time", with(TIMESTAMP, &|_| "1794355201".to_owned())),
            ("a time that is no number", with(TIMESTAMP, &|value| format!("+{value}"))),
            ("no time", with(TIMESTAMP, &|_| String::new())),
            ("a number beyond counting", with(TIMESTAMP, &|_| "99999999999999999999".to_owned())),
            ("no version", with(SIGNATURE, &|value| value[VERSION.len()..].to_owned())),
            ("another version", with(SIGNATURE, &|value| value.replace("v1,", "v2,"))),
            ("not base64", with(SIGNATURE, &|_| "v1,????".to_owned())),
            ("a part of it", with(SIGNATURE, &|value| value[..value.len() - 4].to_owned())),
            ("an empty one", with(SIGNATURE, &|_| VERSION.to_owned())),
            ("a header twice", twice),
            ("nothing", Vec::new()),
            ("no signature", signed()[..2].to_vec()),
        ];
        for (what, headers) in table {
            assert_eq!(check(&headers, BODY, NOW), Err(Code::BadSignature), "{what}");
        }
        for cut in 0..BODY.len() {
            assert_eq!(check(&signed(), &BODY[..cut], NOW), Err(Code::BadSignature), "cut at {cut}");
            let mut body = BODY.to_vec();
            body[cut] ^= 1;
            assert_eq!(check(&signed(), &body, NOW), Err(Code::BadSignature), "bit of {cut}");
        }
        assert!(
            Signer::new(b"other").check(&RawCallback { headers: &signed(), body: BODY, now: NOW }).is_err()
        );
    }

    #[test]
    fn se_02_a_callback_is_fresh_for_five_minutes_either_way() {
        let at = Timestamp(1_794_355_200_000);
        let table = [(0, true), (300_000, true), (300_001, false), (-300_000, true), (-300_001, false)];
        for (length, is_fresh) in table {
            let seen = check(&signed(), BODY, at.plus(Millis(length)));
            assert_eq!(seen.is_ok(), is_fresh, "{length} ms: {seen:?}");
        }
    }

    #[test]
    fn se_02_one_of_several_signatures_is_enough() {
        let mut headers = signed();
        headers[2].1 = format!("v1,AAAA v1a,x {}", headers[2].1);
        assert_eq!(check(&headers, BODY, NOW), Ok("evt-1".to_owned()));
        headers[2].1 = format!("{} {}", "v1,AAAA ".repeat(SIGNATURES_LIMIT).trim(), headers[2].1);
        assert_eq!(check(&headers, BODY, NOW), Err(Code::BadSignature), "more than anybody needs");
    }

    #[test]
    fn se_05_the_secret_does_not_show() {
        assert_eq!(format!("{:?}", Signer::new(b"secret")), "Signer(secret hidden)");
    }
}
