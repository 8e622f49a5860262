//! Keys that their form tells: the prefixes of vendors, and JSON Web Tokens.
//!
//! Prefixes, alphabets and lengths are those that the vendors and their secret-scanning partners
//! publish. Lengths are lower bounds where vendors have changed them before.

use super::edges::{Mix, byte_at, byte_before, end_of, is_base64, is_start, is_url_safe, is_word};
use super::{Kind, Span};

/// What the part behind the prefix is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Hex,
    Alnum,
    Word,
    UrlSafe,
    /// URL-safe with dots.
    Dotted,
    /// URL-safe with dots and tildes.
    Tilde,
    /// Capitals and digits.
    Upper,
    /// A path with `/`.
    Path,
    /// Percent-encoded base64.
    Encoded,
}

impl Body {
    fn accepts(self, byte: u8) -> bool {
        match self {
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => is_word(byte),
            Self::UrlSafe => is_url_safe(byte),
            Self::Dotted => is_url_safe(byte) || byte == b'.',
            Self::Tilde => is_url_safe(byte) || matches!(byte, b'.' | b'~'),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Path => is_url_safe(byte) || byte == b'/',
            Self::Encoded => is_base64(byte) || matches!(byte, b'%' | b'=' | b'-' | b'_'),
        }
    }
}

/// How a key starts and goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) prefix: &'static str,
    body: Body,
    least: usize,
    most: usize,
    shape: Shape,
}

/// What else must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Nothing.
    Plain,
    /// A digit among the rest: what has none is a name made of words.
    Digit,
    /// The prefix stands inside: so many bytes of the alphabet before it belong to the key.
    Inside(usize),
    /// Digits before the prefix belong to the key.
    AfterDigits,
}

const MOST: usize = 512;

const fn rule(prefix: &'static str, body: Body, least: usize) -> Rule {
    Rule {
        prefix,
        body,
        least,
        most: MOST,
        shape: Shape::Plain,
    }
}

const fn words(prefix: &'static str, body: Body, least: usize) -> Rule {
    Rule {
        shape: Shape::Digit,
        ..rule(prefix, body, least)
    }
}

const fn exact(prefix: &'static str, body: Body, length: usize) -> Rule {
    Rule {
        most: length,
        ..rule(prefix, body, length)
    }
}

use Body::{Alnum, Dotted, Encoded, Hex, Path, Tilde, Upper, UrlSafe, Word};

/// The rules; of prefixes that start alike the longer one stands first.
pub(super) const RULES: [Rule; 105] = [
    // Anthropic, OpenAI, OpenRouter, DeepSeek and others that follow them.
    words("sk-ant-", UrlSafe, 24),
    words("sk-proj-", UrlSafe, 32),
    words("sk-svcacct-", UrlSafe, 32),
    words("sk-admin-", UrlSafe, 32),
    words("sk-None-", UrlSafe, 32),
    words("sk-or-v1-", Hex, 32),
    words("sk-lf-", UrlSafe, 32),
    words("pk-lf-", UrlSafe, 32),
    words("sk-", Alnum, 20),
    // Stripe, Clerk.
    rule("sk_live_", Alnum, 16),
    rule("sk_test_", Alnum, 16),
    rule("rk_live_", Alnum, 16),
    rule("rk_test_", Alnum, 16),
    rule("whsec_", Alnum, 24),
    // AWS.
    exact("AKIA", Upper, 16),
    exact("ASIA", Upper, 16),
    exact("ABIA", Upper, 16),
    exact("ACCA", Upper, 16),
    rule("bedrock-api-key-", UrlSafe, 24),
    // GitHub, GitLab.
    rule("ghp_", Alnum, 30),
    rule("gho_", Alnum, 30),
    rule("ghu_", Alnum, 30),
    rule("ghs_", Alnum, 30),
    rule("ghr_", Alnum, 30),
    words("github_pat_", Word, 40),
    words("glpat-", Dotted, 20),
    words("gldt-", UrlSafe, 20),
    words("glrt-", Dotted, 20),
    words("glcbt-", UrlSafe, 20),
    words("glptt-", UrlSafe, 20),
    words("glft-", UrlSafe, 20),
    words("glagent-", UrlSafe, 20),
    words("gloas-", UrlSafe, 20),
    words("glsoat-", UrlSafe, 20),
    // Slack, Discord.
    words("xoxa-", UrlSafe, 20),
    words("xoxb-", UrlSafe, 20),
    words("xoxc-", UrlSafe, 20),
    words("xoxd-", Encoded, 20),
    words("xoxe-", UrlSafe, 20),
    words("xoxe.", Dotted, 20),
    words("xoxo-", UrlSafe, 20),
    words("xoxp-", UrlSafe, 20),
    words("xoxr-", UrlSafe, 20),
    words("xoxs-", UrlSafe, 20),
    words("xapp-", UrlSafe, 20),
    words("hooks.slack.com/services/", Path, 30),
    words("hooks.slack.com/workflows/", Path, 30),
    words("discord.com/api/webhooks/", Path, 40),
    words("discordapp.com/api/webhooks/", Path, 40),
    // Google.
    exact("AIza", UrlSafe, 35),
    words("GOCSPX-", UrlSafe, 24),
    words("ya29.", Dotted, 30),
    // Azure: client secrets have their marker at the fourth byte; signatures.
    Rule {
        shape: Shape::Inside(4),
        ..rule("Q~", Tilde, 30)
    },
    words("&sig=", Encoded, 40),
    words("?sig=", Encoded, 40),
    // Packages and builds.
    words("npm_", Alnum, 36),
    rule("pypi-AgE", UrlSafe, 40),
    rule("rubygems_", Hex, 48),
    words("dckr_pat_", UrlSafe, 24),
    words("dckr_oat_", UrlSafe, 24),
    words("hf_", Alnum, 30),
    words("api_org_", Alnum, 30),
    // Telephony and mail; Telegram's bots have a number before the colon.
    exact("SK0", Hex, 31),
    exact("SK1", Hex, 31),
    exact("SK2", Hex, 31),
    exact("SK3", Hex, 31),
    exact("SK4", Hex, 31),
    exact("SK5", Hex, 31),
    exact("SK6", Hex, 31),
    exact("SK7", Hex, 31),
    exact("SK8", Hex, 31),
    exact("SK9", Hex, 31),
    exact("SKa", Hex, 31),
    exact("SKb", Hex, 31),
    exact("SKc", Hex, 31),
    exact("SKd", Hex, 31),
    exact("SKe", Hex, 31),
    exact("SKf", Hex, 31),
    words("SG.", Dotted, 50),
    exact("key-", Hex, 32),
    Rule {
        shape: Shape::AfterDigits,
        ..rule(":AA", UrlSafe, 32)
    },
    // Clouds, shops, tools.
    rule("shpat_", Hex, 32),
    rule("shpca_", Hex, 32),
    rule("shpss_", Hex, 32),
    rule("dop_v1_", Hex, 64),
    rule("doo_v1_", Hex, 64),
    words("dapi", Hex, 32),
    words("gsk_", Alnum, 40),
    words("xai-", Alnum, 60),
    words("r8_", Alnum, 36),
    words("pplx-", Alnum, 40),
    words("lin_api_", Alnum, 32),
    words("ntn_", Alnum, 40),
    words("glsa_", Word, 40),
    words("glc_", Encoded, 40),
    words("hvs.", UrlSafe, 24),
    words("hvb.", UrlSafe, 24),
    words("dp.pt.", Alnum, 40),
    words("lsv2_", Word, 40),
    words("pcsk_", Word, 40),
    words("PMAK-", UrlSafe, 50),
    words("NRAK-", Upper, 27),
    words("sntrys_", Encoded, 40),
    words("ATATT3", Encoded, 40),
    words("AGE-SECRET-KEY-1", Upper, 50),
];

/// The key whose prefix is at `start`, by a rule.
pub(super) fn find(text: &[u8], start: usize, index: usize, found: &mut Vec<Span>) {
    let Some(rule) = RULES.get(index) else {
        return;
    };
    let body = start + rule.prefix.len();
    if text.get(start..body) != Some(rule.prefix.as_bytes()) {
        return;
    }
    let mut end = end_of(text, body, rule.most + 1, |byte| rule.body.accepts(byte));
    // A full stop behind it is not of it.
    while end > body && matches!(byte_before(text, end), b'.' | b'/') && rule.most == MOST {
        end -= 1;
    }
    let from = match rule.shape {
        Shape::Inside(most) => {
            let before = text
                .get(start.saturating_sub(most)..start)
                .unwrap_or_default();
            // Three letters and the number of the form: `abc8Q~`.
            let is_form = before.len() == most
                && before.last().is_some_and(u8::is_ascii_digit)
                && before.iter().all(|byte| rule.body.accepts(*byte));
            if !is_form {
                return;
            }
            start - most
        }
        Shape::AfterDigits => {
            let before = text.get(..start).unwrap_or_default().iter().rev().take(12);
            let count = before.take_while(|byte| byte.is_ascii_digit()).count();
            if !(8..=11).contains(&count) {
                return;
            }
            start - count
        }
        _ => start,
    };
    let length = end - body;
    let is_long = (rule.least..=rule.most).contains(&length);
    let is_named =
        rule.shape == Shape::Digit && Mix::of(text.get(body..end).unwrap_or_default()).digits == 0;
    let is_inner = matches!(
        rule.prefix.as_bytes().first(),
        Some(b'&' | b'?' | b'h' | b'd')
    ) && rule.prefix.contains(['=', '/']);
    let is_free = is_inner || (is_start(text, from) && byte_before(text, from) != b'-');
    if is_long && !is_named && is_free {
        found.push(Span {
            kind: Kind::ApiKey,
            start: from,
            end,
        });
    }
}

/// The token whose `eyJ`, the base64 of `{"`, is at `start`: three parts (signed), or five
/// (encrypted); the signature may be empty.
pub(super) fn find_jwt(text: &[u8], start: usize, found: &mut Vec<Span>) {
    // Behind a `-` it is inside a part, which is read once.
    let is_inside = byte_before(text, start) == b'-' || !is_start(text, start);
    if is_inside || text.get(start..start + 3) != Some(b"eyJ") {
        return;
    }
    let mut parts = 0;
    let mut at = start;
    let mut end = start;
    while parts < 5 {
        let part = end_of(text, at, usize::MAX, is_url_safe);
        let least = [10, 3, 0, 0, 0].get(parts).copied().unwrap_or(0);
        if part - at < least {
            break;
        }
        if part > at {
            end = part;
        }
        parts += 1;
        if byte_at(text, part) != b'.' {
            break;
        }
        at = part + 1;
    }
    if parts >= 3 {
        found.push(Span {
            kind: Kind::Jwt,
            start,
            end,
        });
    }
}
