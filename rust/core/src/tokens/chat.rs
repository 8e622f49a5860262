//! temp
use crate::{
    dialect::Dialect,
    error::Result,
    message::{Body, Message, Part},
    node::Text,
    tokens::Counter,
};
#[derive(Clone, Debug)]
pub struct ChatRules {
    pub per_message: u32,
}
impl ChatRules {
    pub fn of(_d: Dialect) -> Self {
        Self { per_message: 4 }
    }
    pub fn request_tokens(&self) -> u32 {
        3
    }
    pub fn inserted_message_tokens(&self) -> u32 {
        4
    }
}
pub fn count_message_parts<T: Text>(m: &mut [Message<T>], c: &Counter) -> Result<()> {
    for m in m {
        count_parts(&mut m.parts, c)?;
    }
    Ok(())
}
pub fn count_parts<T: Text>(p: &mut [Part<T>], c: &Counter) -> Result<()> {
    for p in p {
        p.tokens = match &p.body {
            Body::Text(t) => t.with(|t| c.count(t))?,
            Body::Value(v) => c.count(&v.to_json())?,
            Body::Empty => 0,
        };
    }
    Ok(())
}
pub fn message_overhead<T: Text>(_m: &Message<T>, r: &ChatRules, _c: &Counter) -> Result<u32> {
    Ok(r.per_message)
}
