//! Floating-point fields below a tag.
//!
//! With exact decimal numbers, `serde_json` hands a number over as a map wherever `serde` has to
//! buffer it (tagged and flattened types); its own `Number` understands both forms.

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Number;

pub(super) fn float<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = Number::deserialize(deserializer)?;
    number
        .as_f64()
        .ok_or_else(|| D::Error::custom("a number is out of range"))
}

pub(super) fn optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    let number: Option<Number> = Option::deserialize(deserializer)?;
    number
        .map(|number| {
            number
                .as_f64()
                .ok_or_else(|| D::Error::custom("a number is out of range"))
        })
        .transpose()
}
