//! Vectors of rows, and the nearest of them to a query: exact, with few looks at the full numbers.
//!
//! Beside each vector stands a copy in bytes, a quarter of its size, and how far the copy is off.
//! A query is compared with all copies; only rows that could be among the nearest, given how far
//! off they may be, are compared in full. Cost: one small multiplication a row and number.

use crate::error::{Error, ErrorKind, Result};

/// Rows up to which the full numbers are read at once.
const FEW_ROWS: usize = 512;

/// The largest value of a copy.
const LARGEST: f32 = 127.0;

/// Vectors of one length, row by row; rows without one are zeros.
#[derive(Debug, Default)]
pub(super) struct Vectors {
    dimension: usize,
    rows: usize,
    full: Vec<f32>,
    copies: Vec<i8>,
    about: Vec<About>,
}

/// How a copy is to be read.
#[derive(Debug, Clone, Copy, Default)]
struct About {
    /// What one unit of the copy stands for.
    scale: f32,
    /// Length of what the copy leaves out.
    off: f32,
    /// Length of what the copy stands for.
    length: f32,
}

/// A query in small numbers.
struct Asked {
    values: Vec<i16>,
    scale: f32,
    off: f32,
    length: f32,
}

impl Vectors {
    /// Whether these can be appended, one after the other.
    ///
    /// # Errors
    /// `invalid_value` if their lengths differ, or are not that of those before.
    pub(super) fn check<'a>(&self, vectors: impl Iterator<Item = &'a [f32]>) -> Result<()> {
        let mut dimension = self.dimension;
        for vector in vectors.filter(|vector| !vector.is_empty()) {
            if dimension == 0 {
                dimension = vector.len();
            }
            if vector.len() != dimension {
                return Err(wrong_length(vector.len(), dimension));
            }
        }
        Ok(())
    }

    /// Appends the vector of a row, which `check` has seen; an empty one for none.
    pub(super) fn push(&mut self, vector: &[f32]) {
        if !vector.is_empty() && self.dimension == 0 {
            self.dimension = vector.len();
            self.full.resize(self.rows * self.dimension, 0.0);
            self.copies.resize(self.rows * self.dimension, 0);
        }
        self.rows += 1;
        if vector.len() != self.dimension || vector.is_empty() {
            self.full.resize(self.rows * self.dimension, 0.0);
            self.copies.resize(self.rows * self.dimension, 0);
            self.about.push(About::default());
            return;
        }
        let scale = largest(vector) / LARGEST;
        let unit = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let start = self.copies.len();
        self.copies
            .extend(vector.iter().map(|value| (value * unit).round() as i8));
        let copy = self.copies.get(start..).unwrap_or_default();
        let read = copy.iter().map(|value| f32::from(*value) * scale);
        self.about.push(About {
            scale,
            off: length(vector.iter().zip(read.clone()).map(|(one, two)| one - two)),
            length: length(read),
        });
        self.full.extend_from_slice(vector);
    }

    /// Length of each vector; 0 while there is none.
    pub(super) fn dimension(&self) -> usize {
        self.dimension
    }

    /// Keeps the rows that are marked.
    pub(super) fn retain(&mut self, kept: &[bool]) {
        if !kept.contains(&true) {
            // Those to come may be of another length.
            *self = Self::default();
            return;
        }
        let mut to = 0;
        for (from, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
            let (start, end) = (from * self.dimension, (from + 1) * self.dimension);
            self.full.copy_within(start..end, to * self.dimension);
            self.copies.copy_within(start..end, to * self.dimension);
            self.about.copy_within(from..=from, to);
            to += 1;
        }
        self.rows = to;
        self.full.truncate(to * self.dimension);
        self.copies.truncate(to * self.dimension);
        self.about.truncate(to);
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        self.full.len() * 5 + self.about.len() * size_of::<About>()
    }

    /// The product of a row with a query; 0 for a row without a vector.
    pub(super) fn product(&self, row: u32, query: &[f32]) -> f32 {
        let start = row as usize * self.dimension;
        let vector = self.full.get(start..start + self.dimension);
        product(vector.unwrap_or_default(), query)
    }

    /// The rows among those allowed whose products with the query are largest; of equal ones, the
    /// first.
    pub(super) fn nearest(&self, query: &[f32], allowed: &[u32], most: usize) -> Vec<u32> {
        if allowed.len() <= most {
            return allowed.to_vec();
        }
        let mut near = Vec::new();
        if allowed.len() > FEW_ROWS && self.dimension > 0 {
            near = self.likely(&Asked::new(query), allowed, most);
        }
        if near.len() < most {
            // Also where numbers beyond all measure leave no bound.
            near = allowed.to_vec();
        }
        let scored = near
            .into_iter()
            .map(|row| (self.product(row, query), row))
            .collect();
        highest(scored, most)
    }

    /// The rows that could be among the nearest.
    fn likely(&self, asked: &Asked, allowed: &[u32], most: usize) -> Vec<u32> {
        // Rounding of sums in single precision, at its worst.
        let rounding = self.dimension as f32 * f32::EPSILON;
        let mut bounds = Vec::with_capacity(allowed.len());
        for row in allowed {
            let start = *row as usize * self.dimension;
            let copy = self.copies.get(start..start + self.dimension);
            let about = self.about.get(*row as usize).copied().unwrap_or_default();
            let near = small_product(copy.unwrap_or_default(), &asked.values) as f32;
            let off = about.off * asked.length
                + about.length * asked.off
                + rounding * (about.length + about.off) * asked.length;
            bounds.push((near * about.scale * asked.scale, off));
        }
        let mut least: Vec<f32> = bounds.iter().map(|(near, off)| near - off).collect();
        let (_, threshold, _) =
            least.select_nth_unstable_by(most.saturating_sub(1), |one, two| two.total_cmp(one));
        let threshold = *threshold;
        allowed
            .iter()
            .zip(bounds)
            .filter(|(_, (near, off))| near + off >= threshold)
            .map(|(row, _)| *row)
            .collect()
    }
}

impl Asked {
    fn new(query: &[f32]) -> Self {
        // As fine as sums of 32 bits allow.
        let most = i32::MAX as usize / (LARGEST as usize * query.len().max(1));
        let finest = most.clamp(1, i16::MAX as usize) as f32;
        let scale = largest(query) / finest;
        let unit = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let values: Vec<i16> = query
            .iter()
            .map(|value| (value * unit).round() as i16)
            .collect();
        let read = values.iter().map(|value| f32::from(*value) * scale);
        Self {
            off: length(query.iter().zip(read).map(|(one, two)| one - two)),
            length: length(query.iter().copied()),
            values,
            scale,
        }
    }
}

/// The rows with the highest scores, ascending; of equal ones, the first.
pub(super) fn highest(mut scored: Vec<(f32, u32)>, most: usize) -> Vec<u32> {
    if most == 0 {
        return Vec::new();
    }
    if scored.len() > most {
        scored.select_nth_unstable_by(most - 1, |one, two| {
            two.0.total_cmp(&one.0).then(one.1.cmp(&two.1))
        });
        scored.truncate(most);
    }
    let mut rows: Vec<u32> = scored.into_iter().map(|(_, row)| row).collect();
    rows.sort_unstable();
    rows
}

/// Sixteen sums side by side, which the compiler turns into wide instructions.
fn product(one: &[f32], two: &[f32]) -> f32 {
    const WIDE: usize = 16;
    let mut sums = [0.0f32; WIDE];
    let (ones, twos) = (one.chunks_exact(WIDE), two.chunks_exact(WIDE));
    let rest: f32 = (ones.remainder().iter().zip(twos.remainder()))
        .map(|(one, two)| one * two)
        .sum();
    for (ones, twos) in ones.zip(twos) {
        for (sum, (one, two)) in sums.iter_mut().zip(ones.iter().zip(twos)) {
            *sum += one * two;
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// Wrapping, so that nothing stands in the way of wide instructions; `Asked` sees to it that no sum
/// is beyond 32 bits.
fn small_product(copy: &[i8], values: &[i16]) -> i32 {
    copy.iter().zip(values).fold(0i32, |sum, (one, two)| {
        sum.wrapping_add(i32::from(*one).wrapping_mul(i32::from(*two)))
    })
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |most, value| value.abs().max(most))
}

fn length(values: impl Iterator<Item = f32>) -> f32 {
    values
        .map(|value| f64::from(value) * f64::from(value))
        .sum::<f64>()
        .sqrt() as f32
}

#[cold]
fn wrong_length(found: usize, wanted: usize) -> Error {
    Error::new(
        ErrorKind::InvalidValue,
        format!("a vector has {found} numbers, those before {wanted}"),
    )
}
