//! Columns of memories: exact, and the same however they came to be.

use std::collections::BTreeMap;

use proptest::prelude::*;
use satchel_core::resident::{Candidates, Facts, Passing, Query, Resident, Row};

const ALL: Passing = Passing {
    now: 0.0,
    confidence: 0.0,
    kinds: u32::MAX,
    with_claims: true,
    with_history: true,
};

/// A row with its own texts.
#[derive(Debug, Clone)]
struct Owned {
    number: i64,
    path: Vec<u8>,
    session: Vec<u8>,
    place: Option<i64>,
    words: String,
    label: Option<String>,
    vector: Vec<f32>,
    facts: Facts,
}

impl Owned {
    fn row(&self) -> Row<'_> {
        Row {
            number: self.number,
            path: &self.path,
            session: &self.session,
            place: self.place,
            words: &self.words,
            label: self.label.as_deref(),
            vector: &self.vector,
            facts: self.facts,
        }
    }
}

fn vector(dimension: usize) -> impl Strategy<Value = Vec<f32>> {
    let numbers = prop::collection::vec(-1.0f32..1.0, dimension);
    prop_oneof![6 => numbers, 1 => Just(vec![0.0; dimension]), 1 => Just(Vec::new())]
}

prop_compose! {
    fn facts()(
        time in 0.0..9.0f64,
        expires in prop_oneof![Just(f64::INFINITY), Just(3.0)],
        confidence in prop_oneof![Just(0.25), Just(1.0)],
        kind in 0u8..3,
        is_claim: bool,
        is_superseded: bool,
    ) -> Facts {
        Facts { time, expires, confidence, kind, is_claim, is_superseded }
    }
}

prop_compose! {
    fn row(dimension: usize)(
        number in 0i64..60,
        path in 0u8..3,
        session in 0u8..2,
        place in prop::option::of(0i64..12),
        words in prop::collection::vec(0u8..9, 0..6),
        label in prop::option::of("[ab]"),
        vector in vector(dimension),
        facts in facts(),
    ) -> Owned {
        Owned {
            number,
            path: vec![path],
            session: vec![session],
            // Numbers of one session differ in their places.
            place: place.map(|place| place * 60 + number),
            words: words.iter().map(|word| format!("w{word}")).collect::<Vec<_>>().join(" "),
            label,
            vector,
            facts,
        }
    }
}

prop_compose! {
    fn passing()(
        now in prop_oneof![Just(0.0), Just(5.0)],
        confidence in prop_oneof![Just(0.0), Just(0.5)],
        kinds in 0u32..8,
        with_claims: bool,
        with_history: bool,
    ) -> Passing {
        Passing { now, confidence, kinds, with_claims, with_history }
    }
}

prop_compose! {
    fn query(dimension: usize)(
        terms in prop::collection::btree_set(0u8..10, 0..4),
        weight in 0.1f32..3.0,
        mean_terms in 0.0..5.0f64,
        vector in prop::option::of(prop::collection::vec(-1.0f32..1.0, dimension)),
        most in 1usize..8,
    ) -> Query {
        let terms: Vec<String> = terms.iter().map(|term| format!("w{term}")).collect();
        let weights = (0..terms.len()).map(|at| weight + at as f32).collect();
        Query { terms, weights, mean_terms, vector, most }
    }
}

/// The rows as they stand after all of them were put, by number.
fn last(rows: &[Vec<Owned>]) -> BTreeMap<i64, Owned> {
    let rows = rows.iter().flatten();
    rows.map(|row| (row.number, row.clone())).collect()
}

fn distinct(rows: Vec<Owned>) -> Vec<Owned> {
    let known: BTreeMap<i64, Owned> = rows.into_iter().map(|row| (row.number, row)).collect();
    known.into_values().collect()
}

fn resident(rows: &[Owned]) -> Resident {
    let mut resident = Resident::default();
    let rows: Vec<Row<'_>> = rows.iter().map(Owned::row).collect();
    resident.put(&rows).unwrap();
    resident
}

fn passes(passing: &Passing, facts: &Facts) -> bool {
    facts.expires > passing.now
        && facts.confidence >= passing.confidence
        && passing.kinds & (1 << facts.kind) != 0
        && (passing.with_claims || !facts.is_claim)
        && (passing.with_history || !facts.is_superseded)
}

fn bm25(row: &Owned, query: &Query) -> f64 {
    let words: Vec<&str> = row
        .words
        .split(' ')
        .filter(|word| !word.is_empty())
        .collect();
    let norm = 0.25 + 0.75 * words.len() as f64 / query.mean_terms.max(1.0);
    let terms = query.terms.iter().zip(&query.weights);
    terms
        .map(|(term, weight)| {
            let count = words.iter().filter(|word| *word == term).count() as f64;
            f64::from(*weight) * count * 2.2 / (count + 1.2 * norm)
        })
        .sum()
}

fn dot(one: &[f32], two: &[f32]) -> f64 {
    let pairs = one.iter().zip(two);
    pairs
        .map(|(one, two)| f64::from(*one) * f64::from(*two))
        .sum()
}

/// Whether no row that was left out is better than one that was found.
fn best(scores: &BTreeMap<i64, f64>, found: &[i64], most: usize) -> bool {
    let mut all: Vec<f64> = scores.values().copied().collect();
    all.sort_by(|one, two| two.total_cmp(one));
    let Some(least) = all.get(most.min(all.len()).wrapping_sub(1)) else {
        return true;
    };
    scores
        .iter()
        .all(|(number, score)| *score <= least + 1e-4 || found.contains(number))
}

proptest! {
    #[test]
    fn matches_oracle(
        pieces in prop::collection::vec(prop::collection::vec(row(5), 0..20), 1..4),
        passing in passing(),
        query in query(5),
    ) {
        let pieces: Vec<Vec<Owned>> = pieces.into_iter().map(distinct).collect();
        let mut resident = Resident::default();
        for piece in &pieces {
            let rows: Vec<Row<'_>> = piece.iter().map(Owned::row).collect();
            resident.put(&rows).unwrap();
        }
        let rows = last(&pieces);
        prop_assert_eq!(resident.len(), rows.len());
        let figures = resident.statistics(&query.terms);
        let of_words = |row: &Owned| row.words.split(' ').filter(|word| !word.is_empty()).count();
        let length: usize = rows.values().map(of_words).sum();
        prop_assert_eq!(figures.terms, length as u64);
        for (term, count) in query.terms.iter().zip(&figures.holding) {
            let holds = |row: &&Owned| row.words.split(' ').any(|word| word == term);
            prop_assert_eq!(i64::try_from(rows.values().filter(holds).count()).unwrap(), *count);
        }
        let found = resident.candidates(&passing, &query).unwrap();
        prop_assert!(found.numbers.is_sorted());
        for (at, number) in found.numbers.iter().enumerate() {
            let row = &rows[number];
            prop_assert!(passes(&passing, &row.facts));
            prop_assert!((f64::from(found.lexical[at]) - bm25(row, &query)).abs() < 1e-4);
            let near = query.vector.as_ref().map_or(0.0, |vector| dot(vector, &row.vector));
            prop_assert!((f64::from(found.dense[at]) - near).abs() < 1e-5);
            prop_assert_eq!(&found.labels[at], &row.label);
            for (places, step) in [(&found.previous, -1), (&found.following, 1)] {
                if let Ok(place) = usize::try_from(places[at]) {
                    let beside = &rows[&found.numbers[place]];
                    prop_assert_eq!((&beside.path, &beside.session), (&row.path, &row.session));
                    prop_assert_eq!(beside.place.unwrap(), row.place.unwrap() + step);
                }
            }
        }
        let allowed = rows.values().filter(|row| passes(&passing, &row.facts));
        let by_words: BTreeMap<i64, f64> = allowed
            .clone()
            .map(|row| (row.number, bm25(row, &query)))
            .filter(|(_, score)| *score > 0.0)
            .collect();
        prop_assert!(best(&by_words, &found.numbers, query.most));
        if let Some(vector) = &query.vector {
            let near = allowed.map(|row| (row.number, dot(vector, &row.vector))).collect();
            prop_assert!(best(&near, &found.numbers, query.most));
        }
    }

    #[test]
    fn incremental_equals_rebuild(
        pieces in prop::collection::vec(prop::collection::vec(row(3), 0..20), 1..4),
        kept in prop::collection::vec(0i64..60, 0..40),
        paths in prop::collection::vec(0u8..3, 0..3),
        query in query(3),
    ) {
        let pieces: Vec<Vec<Owned>> = pieces.into_iter().map(distinct).collect();
        let mut grown = Resident::default();
        for piece in &pieces {
            let rows: Vec<Row<'_>> = piece.iter().map(Owned::row).collect();
            grown.put(&rows).unwrap();
        }
        let names: Vec<Vec<u8>> = paths.iter().map(|path| vec![*path]).collect();
        let named: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        grown.retain(&named, &kept);
        let stays = |row: &Owned| !names.contains(&row.path) || kept.contains(&row.number);
        let rows: Vec<Owned> = last(&pieces).into_values().filter(stays).collect();
        let built = resident(&rows);
        prop_assert_eq!(grown.len(), built.len());
        prop_assert_eq!(grown.size(), built.size());
        prop_assert_eq!(grown.statistics(&query.terms), built.statistics(&query.terms));
        for path in 0u8..3 {
            prop_assert_eq!(grown.count(&[path]), built.count(&[path]));
        }
        // With room for all, ties cannot be broken by who came first.
        let query = Query { most: 100, ..query };
        let found = grown.candidates(&ALL, &query).unwrap();
        prop_assert_eq!(found, built.candidates(&ALL, &query).unwrap());
    }
}

/// Numbers from 0 to 1 that look random.
fn noise(seed: &mut u64) -> f32 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 40) as f32 / 16_777_216.0
}

fn many(rows: usize, dimension: usize, seed: u64) -> Vec<Owned> {
    let mut seed = seed;
    (0..rows)
        .map(|at| Owned {
            number: i64::try_from(at).unwrap(),
            path: vec![0],
            session: Vec::new(),
            place: None,
            words: String::new(),
            label: None,
            // Some far longer than others, and many nearly alike.
            vector: (0..dimension)
                .map(|place| {
                    let alike = if at % 3 == 0 { 0.01 } else { 1.0 };
                    (place as f32 / dimension as f32 + alike * (noise(&mut seed) - 0.5))
                        * (1 + at % 7) as f32
                })
                .collect(),
            facts: Facts {
                time: 0.0,
                expires: f64::INFINITY,
                confidence: 1.0,
                kind: 0,
                is_claim: false,
                is_superseded: false,
            },
        })
        .collect()
}

#[test]
fn the_nearest_of_many_are_exact() {
    for (dimension, seed) in [(3, 1), (16, 2), (37, 3), (256, 4), (1_025, 5)] {
        let rows = many(1_500, dimension, seed);
        let resident = resident(&rows);
        for query in [0usize, 7, 500, 1_499] {
            let query = Query {
                terms: Vec::new(),
                weights: Vec::new(),
                mean_terms: 1.0,
                vector: Some(rows[query].vector.clone()),
                most: 40,
            };
            let Candidates { numbers, dense, .. } = resident.candidates(&ALL, &query).unwrap();
            assert_eq!(numbers.len(), 40);
            let least = dense.iter().copied().fold(f32::INFINITY, f32::min);
            let size = dense.iter().fold(0.0f32, |most, one| most.max(one.abs()));
            for row in &rows {
                let near = dot(query.vector.as_deref().unwrap(), &row.vector);
                let found = numbers.contains(&row.number);
                assert!(
                    found || near <= f64::from(least) + f64::from(size) * 1e-4,
                    "{near} {least}"
                );
            }
        }
    }
}

#[test]
fn extreme_numbers_do_not_panic() {
    let values = [
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        f32::INFINITY,
        f32::NAN,
        -0.0,
    ];
    let rows: Vec<Owned> = many(700, 6, 1)
        .into_iter()
        .map(|row| {
            let turn = row.number as usize % 6;
            let vector = (0..6).map(|at| values[(at + turn) % 6]).collect();
            Owned { vector, ..row }
        })
        .collect();
    let query = Query {
        terms: Vec::new(),
        weights: Vec::new(),
        mean_terms: f64::NAN,
        vector: Some(values.to_vec()),
        most: 5,
    };
    let found = resident(&rows).candidates(&ALL, &query).unwrap();
    assert_eq!(found.numbers.len(), 5);
    let none = Query { most: 0, ..query };
    assert!(
        resident(&rows)
            .candidates(&ALL, &none)
            .unwrap()
            .numbers
            .is_empty()
    );
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let rows = many(2, 3, 1);
    let mut resident = resident(&rows);
    let mut other = rows[0].clone();
    other.number = 9;
    for row in [
        Row {
            vector: &[1.0],
            ..other.row()
        },
        Row {
            facts: Facts {
                kind: 32,
                ..other.facts
            },
            ..other.row()
        },
    ] {
        assert_eq!(resident.put(&[row]).unwrap_err().code(), "invalid_value");
    }
    let twice = [other.row(), other.row()];
    assert_eq!(resident.put(&twice).unwrap_err().code(), "invalid_value");
    assert_eq!(resident.len(), 2);
    let query = Query {
        terms: vec!["a".to_owned()],
        weights: Vec::new(),
        mean_terms: 1.0,
        vector: None,
        most: 5,
    };
    assert_eq!(
        resident.candidates(&ALL, &query).unwrap_err().code(),
        "invalid_value"
    );
    let query = Query {
        terms: Vec::new(),
        vector: Some(vec![1.0]),
        ..query
    };
    assert_eq!(
        resident.candidates(&ALL, &query).unwrap_err().code(),
        "invalid_value"
    );
    // When all are gone, vectors of another length may come.
    resident.retain(&[&[0]], &[]);
    resident
        .put(&[Row {
            vector: &[1.0],
            ..other.row()
        }])
        .unwrap();
    assert_eq!(resident.len(), 1);
}
