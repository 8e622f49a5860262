//! The next window, as every policy proposes it.

use super::baseline::Windows;
use super::contender::{Baseline, Contender};
use super::oracle::Clairvoyant;
use super::packed::Packed;
use super::recording::Recording;
use super::unit::Unit;
use crate::error::Result;

/// A window said as a change of the one before.
#[derive(Debug)]
pub(super) struct Proposal {
    /// Units at the front that are those of the window before.
    pub(super) keep: usize,
    /// What follows them.
    pub(super) tail: Vec<Unit>,
    /// Tokens by the policy's own account; `None` for the sum of the units.
    pub(super) tokens: Option<u64>,
    /// Whether room was made for this window.
    pub(super) is_compacted: bool,
}

/// A policy at work on one recording.
#[derive(Debug)]
pub(super) enum Player<'a> {
    Packed(Box<Packed<'a>>),
    Baseline(Windows<'a>),
    Oracle(Clairvoyant<'a>),
}

impl<'a> Player<'a> {
    pub(super) fn new(recording: &'a Recording, contender: &Contender, seed: u64) -> Result<Self> {
        Ok(match contender {
            Contender::Satchel(policy) => Self::Packed(Box::new(Packed::new(recording, policy)?)),
            Contender::Baseline(Baseline::Oracle) => {
                Self::Oracle(Clairvoyant::new(recording, false))
            }
            Contender::Baseline(Baseline::OracleLines) => {
                Self::Oracle(Clairvoyant::new(recording, true))
            }
            Contender::Baseline(baseline) => {
                Self::Baseline(Windows::new(recording, *baseline, seed))
            }
        })
    }

    /// The window at the boundary before message `at`; boundaries are asked in order.
    pub(super) fn window(&mut self, at: usize) -> Result<Proposal> {
        match self {
            Self::Packed(packed) => packed.window(at),
            Self::Baseline(windows) => windows.window(at),
            Self::Oracle(oracle) => oracle.window(at),
        }
    }

    /// How often room was made, if that is a thing of its own and not done before every call.
    pub(super) fn compactions(&self) -> Option<u32> {
        match self {
            Self::Packed(packed) => Some(packed.compactions()),
            Self::Baseline(windows) => windows.compactions(),
            Self::Oracle(oracle) => Some(oracle.compactions()),
        }
    }
}
