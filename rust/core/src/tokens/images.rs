//! What images cost, by the provider's own formula where one is published.
//!
//! The formulas are here, every figure in them is the model's and comes with its rules. A size that
//! is not known (a remote URL, an uploaded file, an unknown format) costs the most that the formula
//! gives for any size. A count with an image is never exact: providers change these rules.

use serde::{Deserialize, Serialize};

use super::image_size::image_size;
use super::numbers;
use crate::error::{Error, ErrorKind, Result};
use crate::node::{Text, Value};

/// Tokens of an image where nothing is known about the model or the image: the most that a standard
/// Claude model takes for one, and more than the tile formula of gpt-4o gives for any size.
///
/// # Source
/// Anthropic documentation, vision page, read 2026-08-21: at most 1,568 after the resize.
pub const IMAGE_TOKENS: u32 = 1_568;

/// Images whose formula counts tiles of unknown number: as many as a square of 3,072 pixels has.
const UNKNOWN_TILES: u32 = 16;

/// The formula of a model's images and its figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ImageRules {
    /// Squares of `side` pixels after a resize to at most `max_side` and `max_tokens` of them.
    ///
    /// # Source
    /// Anthropic documentation, vision page, read 2026-08-21: `ceil(w/28) * ceil(h/28)`.
    Grid {
        /// Side of a square, in pixels.
        side: u32,
        /// Longest side after the resize, counted in whole squares.
        max_side: u32,
        /// Most tokens after the resize.
        max_tokens: u32,
    },
    /// `base` for low detail; else `tile` more for each square of 512 pixels, after a fit into 2,048
    /// by 2,048 and of the short side to 768.
    ///
    /// # Source
    /// `OpenAI` documentation, images page, as third parties quote it, 2026-11-29.
    Tiles {
        /// For each image.
        base: u32,
        /// For each square.
        tile: u32,
    },
    /// Squares of 32 pixels, scaled down to a budget, times a factor.
    ///
    /// # Source
    /// As for [`ImageRules::Tiles`].
    Patches {
        /// Most squares; `None` for as many as there are.
        #[serde(default)]
        budget: Option<u32>,
        /// Longest side before squares are counted, in pixels.
        #[serde(default)]
        max_side: Option<u32>,
        /// The same two with `detail` `original`, and with `auto` if `auto_original`.
        #[serde(default)]
        original: Option<(u32, u32)>,
        /// Whether `auto` is `original` rather than `high`.
        #[serde(default)]
        auto_original: bool,
        /// Tokens of a square.
        #[serde(deserialize_with = "numbers::float")]
        multiplier: f64,
    },
    /// `tile` for an image with both sides up to `small`, else for each square of `side` pixels.
    ///
    /// # Source
    /// Gemini documentation, tokens page: 258 up to 384 pixels, else 258 for each 768 by 768.
    Squares {
        /// Tokens of a square.
        tile: u32,
        /// Both sides of an image that is one square, in pixels.
        small: u32,
        /// Side of a square, in pixels.
        side: u32,
    },
    /// By the resolution that is asked for, whatever the size.
    ///
    /// # Source
    /// Gemini documentation, media resolution page, read 2026-11-29.
    Levels {
        /// Low.
        low: u32,
        /// Medium.
        medium: u32,
        /// High, and where none is asked for.
        high: u32,
        /// The highest.
        ultra: u32,
    },
    /// A figure for every image.
    Flat {
        /// Tokens of an image.
        tokens: u32,
    },
}

/// How closely an image is to be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Nothing said: the provider decides.
    #[default]
    Auto,
    /// As cheap as possible.
    Low,
    /// In between.
    Medium,
    /// Closely.
    High,
    /// As closely as the provider can, or in its own size.
    Original,
}

impl Detail {
    fn of(name: &str) -> Self {
        match name
            .to_ascii_lowercase()
            .trim_start_matches("media_resolution_")
        {
            "low" => Self::Low,
            "medium" => Self::Medium,
            "high" => Self::High,
            "original" | "ultra_high" => Self::Original,
            _ => Self::Auto,
        }
    }
}

impl ImageRules {
    /// Tokens of an image of `size` (width and height in pixels, 0 or `None` if it is not known).
    ///
    /// # Example
    /// ```
    /// # use satchel_core::tokens::images::{Detail, ImageRules};
    /// let claude = ImageRules::Grid { side: 28, max_side: 1568, max_tokens: 1568 };
    /// assert_eq!(claude.tokens(Some((1000, 1000)), Detail::Auto), 1296);
    /// let gpt_4o = ImageRules::Tiles { base: 85, tile: 170 };
    /// assert_eq!(gpt_4o.tokens(Some((2048, 4096)), Detail::High), 1105);
    /// assert_eq!(gpt_4o.tokens(Some((2048, 4096)), Detail::Low), 85);
    /// ```
    pub fn tokens(&self, size: Option<(u32, u32)>, detail: Detail) -> u32 {
        let size = size.filter(|&(width, height)| width > 0 && height > 0);
        match *self {
            Self::Grid {
                side,
                max_side,
                max_tokens,
            } => size.map_or(max_tokens, |size| grid(size, side, max_side, max_tokens)),
            Self::Tiles { base, tile } => match (detail, size) {
                (Detail::Low, _) => base,
                // 2,048 by 768 has four squares by two.
                (_, None) => base.saturating_add(tile.saturating_mul(8)),
                (_, Some(size)) => base.saturating_add(tile.saturating_mul(tiles(size))),
            },
            Self::Patches {
                budget,
                max_side,
                original,
                auto_original,
                multiplier,
            } => {
                let (budget, max_side) = match original {
                    Some((budget, max_side))
                        if detail == Detail::Original
                            || (detail == Detail::Auto && auto_original) =>
                    {
                        (Some(budget), Some(max_side))
                    }
                    _ => (budget, max_side),
                };
                let patches = match size {
                    Some(size) => patches(size, budget, max_side),
                    // Without a budget: as many as the largest size that is named anywhere has.
                    None => f64::from(budget.unwrap_or(10_000)),
                };
                (patches * multiplier).ceil() as u32
            }
            Self::Squares { tile, small, side } => match size {
                None => tile.saturating_mul(UNKNOWN_TILES),
                Some((width, height)) if width <= small && height <= small => tile,
                Some((width, height)) => {
                    tile.saturating_mul(width.div_ceil(side).saturating_mul(height.div_ceil(side)))
                }
            },
            Self::Levels {
                low,
                medium,
                high,
                ultra,
            } => match detail {
                Detail::Low => low,
                Detail::Medium => medium,
                Detail::Auto | Detail::High => high,
                Detail::Original => ultra,
            },
            Self::Flat { tokens } => tokens,
        }
    }

    /// Tokens of an image block of any dialect.
    pub fn block_tokens<T: Text>(&self, block: &Value<T>) -> u32 {
        let image = Found::in_block(block);
        let size = image.payload.and_then(|payload| payload.with(image_size));
        self.tokens(size, image.detail)
    }

    /// The rules that a block's own dialect goes by, where no model says otherwise.
    pub(super) fn of_block<T: Text>(block: &Value<T>) -> Self {
        if block.get("image_url").is_some() {
            return Self::Tiles {
                base: 85,
                tile: 170,
            };
        }
        let is_gemini = ["inlineData", "inline_data", "fileData", "file_data"]
            .iter()
            .any(|key| block.get(key).is_some());
        if is_gemini {
            return Self::Squares {
                tile: 258,
                small: 384,
                side: 768,
            };
        }
        Self::Grid {
            side: 28,
            max_side: IMAGE_TOKENS,
            max_tokens: IMAGE_TOKENS,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let is_valid = match *self {
            Self::Grid {
                side,
                max_side,
                max_tokens,
            } => side > 0 && max_side >= side && max_tokens > 0,
            Self::Patches {
                budget,
                max_side,
                original,
                multiplier,
                ..
            } => {
                budget != Some(0)
                    && max_side != Some(0)
                    && original.is_none_or(|(budget, side)| budget > 0 && side > 0)
                    && multiplier.is_finite()
                    && multiplier > 0.0
            }
            Self::Squares { side, .. } => side > 0,
            Self::Tiles { .. } | Self::Levels { .. } | Self::Flat { .. } => true,
        };
        if is_valid {
            Ok(())
        } else {
            Err(Error::new(
                ErrorKind::InvalidValue,
                "rules of images: sides, budgets and the multiplier must be above 0",
            ))
        }
    }
}

/// What an image block says about its image.
struct Found<'a, T> {
    payload: Option<&'a T>,
    detail: Detail,
}

impl<'a, T: Text> Found<'a, T> {
    fn in_block(block: &'a Value<T>) -> Self {
        let mut found = Self {
            payload: None,
            detail: Detail::Auto,
        };
        found.look(block, 0);
        found
    }

    /// Payloads stand at most three fields deep: `image`, `source`, `bytes`.
    fn look(&mut self, value: &'a Value<T>, depth: u32) {
        let Value::Map(entries) = value else { return };
        for (key, value) in entries {
            let (is_payload, is_detail) = key.with(|key| {
                (
                    matches!(key, "url" | "image_url" | "data" | "bytes" | "file_data"),
                    matches!(
                        key,
                        "detail" | "mediaResolution" | "media_resolution" | "level"
                    ),
                )
            });
            match value.as_text() {
                Some(text) if is_payload && self.payload.is_none() => self.payload = Some(text),
                Some(text) if is_detail => self.detail = text.with(Detail::of),
                None if depth < 3 => self.look(value, depth + 1),
                _ => {}
            }
        }
    }
}

/// The payload of a block that carries a sound, wherever its dialect puts it.
pub(super) fn payload_of<T: Text>(block: &Value<T>) -> Option<&T> {
    Found::in_block(block).payload
}

/// Squares of a resized image, by the published steps: if it does not fit, the largest long edge
/// that does is searched, and the short edge follows the aspect, rounded half to even.
fn grid((width, height): (u32, u32), side: u32, max_side: u32, max_tokens: u32) -> u32 {
    let squares = |width: u32, height: u32| {
        let (columns, rows) = (width.div_ceil(side), height.div_ceil(side));
        let most = u64::from(columns.max(rows)) * u64::from(side);
        let tokens = u64::from(columns) * u64::from(rows);
        (most <= u64::from(max_side) && tokens <= u64::from(max_tokens)).then_some(tokens as u32)
    };
    if let Some(tokens) = squares(width, height) {
        return tokens;
    }
    let (long, short) = (width.max(height), width.min(height));
    let aspect = f64::from(long) / f64::from(short);
    let resized = |long: u32| {
        let short = (f64::from(long) / aspect).round_ties_even().max(1.0);
        squares(long, short as u32)
    };
    let (mut fits, mut too_long) = (1, long);
    while too_long - fits > 1 {
        let middle = fits + (too_long - fits) / 2;
        if resized(middle).is_some() {
            fits = middle;
        } else {
            too_long = middle;
        }
    }
    resized(fits).unwrap_or(max_tokens)
}

/// Squares of 512 pixels after both downscales.
fn tiles((width, height): (u32, u32)) -> u32 {
    let (mut width, mut height) = (f64::from(width), f64::from(height));
    let fit = (2048.0 / width.max(height)).min(1.0);
    width *= fit;
    height *= fit;
    let fit = (768.0 / width.min(height)).min(1.0);
    let squares = |side: f64| (side * fit / 512.0 - 1e-9).ceil().max(1.0) as u32;
    squares(width) * squares(height)
}

/// Squares of 32 pixels within a budget; the number is whole.
fn patches((width, height): (u32, u32), budget: Option<u32>, max_side: Option<u32>) -> f64 {
    const SIDE: f64 = 32.0;
    let (mut width, mut height) = (f64::from(width), f64::from(height));
    if let Some(most) = max_side {
        let fit = (f64::from(most) / width.max(height)).min(1.0);
        width *= fit;
        height *= fit;
    }
    // Rounding must not make a further square of a side that is a whole number of them.
    let squares = |side: f64| (side / SIDE - 1e-9).ceil().max(1.0);
    let all = squares(width) * squares(height);
    let Some(budget) = budget.map(f64::from).filter(|&budget| all > budget) else {
        return all;
    };
    let fit = (SIDE * SIDE * budget / (width * height)).sqrt();
    let whole = |side: f64| {
        let squares = side * fit / SIDE;
        if squares < 1.0 {
            1.0
        } else {
            squares.floor() / squares
        }
    };
    let fit = fit * whole(width).min(whole(height));
    (squares(width * fit) * squares(height * fit)).min(budget)
}
