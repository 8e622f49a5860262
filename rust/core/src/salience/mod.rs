//! How much a message matters for the next call, as a number from 0 to 1.

pub mod features;
pub mod identifiers;
pub mod index;
pub mod likelihood;
pub mod line;
pub mod passages;
pub mod rows;
pub mod score;
pub mod signals;

pub use features::Features;
pub use score::Weights;
pub use signals::Signals;
