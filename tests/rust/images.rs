//! What images cost: the published checks, sizes from headers, payloads of any kind.

use proptest::prelude::*;
use satchel_core::node::Node;
use satchel_core::tokens::images::{Detail, ImageRules};
use satchel_core::tokens::{image_size, sound_seconds};
use serde_json::{Value, json};

const CLAUDE: ImageRules = ImageRules::Grid {
    side: 28,
    max_side: 1568,
    max_tokens: 1568,
};
const CLAUDE_4_7: ImageRules = ImageRules::Grid {
    side: 28,
    max_side: 2576,
    max_tokens: 4784,
};
const GPT_4O: ImageRules = ImageRules::Tiles {
    base: 85,
    tile: 170,
};

fn patches(budget: Option<u32>, multiplier: f64) -> ImageRules {
    ImageRules::Patches {
        budget,
        max_side: Some(2048),
        original: None,
        auto_original: false,
        multiplier,
    }
}

#[test]
fn the_published_checks_of_anthropic() {
    for (size, standard, newer) in [
        ((200, 200), 64, 64),
        ((1000, 1000), 1_296, 1_296),
        ((1920, 1080), 1_560, 2_691),
        ((2000, 1500), 1_564, 3_888),
        ((3840, 2160), 1_560, 4_784),
        ((1075, 1520), 1_551, 2_145),
    ] {
        let found = [CLAUDE, CLAUDE_4_7].map(|rules| rules.tokens(Some(size), Detail::Auto));
        assert_eq!(found, [standard, newer], "{size:?}");
    }
}

#[test]
fn the_published_checks_of_openai() {
    for (size, tokens) in [
        ((1024, 1024), 765),
        ((2048, 4096), 1_105),
        ((512, 512), 255),
    ] {
        assert_eq!(GPT_4O.tokens(Some(size), Detail::High), tokens, "{size:?}");
        assert_eq!(GPT_4O.tokens(Some(size), Detail::Low), 85);
    }
    let plain = patches(Some(1_536), 1.0);
    assert_eq!(plain.tokens(Some((1024, 1024)), Detail::Auto), 1_024);
    assert_eq!(plain.tokens(Some((1800, 2400)), Detail::Auto), 1_452);
    let mini = patches(Some(1_536), 1.62);
    assert_eq!(mini.tokens(Some((1024, 1024)), Detail::Auto), 1_659);
}

#[test]
fn original_and_auto_of_the_newest_patches() {
    let rules = |auto_original| ImageRules::Patches {
        budget: Some(2_500),
        max_side: Some(2_048),
        original: Some((10_000, 6_000)),
        auto_original,
        multiplier: 1.0,
    };
    let size = Some((3_200, 2_400));
    let [high, original] =
        [Detail::High, Detail::Original].map(|detail| rules(false).tokens(size, detail));
    assert!(high <= 2_500);
    assert_eq!(original, 100 * 75);
    assert_eq!(rules(false).tokens(size, Detail::Auto), high);
    assert_eq!(rules(true).tokens(size, Detail::Auto), original);
    // Without a budget there are as many as the image has.
    assert_eq!(
        patches(None, 1.0).tokens(Some((2048, 2048)), Detail::Auto),
        4_096
    );
}

#[test]
fn the_figures_of_gemini() {
    let squares = ImageRules::Squares {
        tile: 258,
        small: 384,
        side: 768,
    };
    for (size, tiles) in [
        ((384, 384), 1),
        ((385, 100), 1),
        ((769, 768), 2),
        ((1600, 1600), 9),
    ] {
        assert_eq!(
            squares.tokens(Some(size), Detail::Auto),
            258 * tiles,
            "{size:?}"
        );
    }
    let levels = ImageRules::Levels {
        low: 280,
        medium: 560,
        high: 1_120,
        ultra: 2_240,
    };
    let all = [
        Detail::Low,
        Detail::Medium,
        Detail::High,
        Detail::Auto,
        Detail::Original,
    ];
    let found = all.map(|detail| levels.tokens(None, detail));
    assert_eq!(found, [280, 560, 1_120, 1_120, 2_240]);
}

#[test]
fn an_unknown_size_costs_the_most_there_is() {
    for rules in [CLAUDE, CLAUDE_4_7, GPT_4O, patches(Some(1_536), 1.62)] {
        let most = rules.tokens(None, Detail::High);
        for size in [
            (1, 1),
            (768, 2048),
            (8000, 8000),
            (8000, 1),
            (2048, 768),
            (1568, 1568),
        ] {
            assert!(
                rules.tokens(Some(size), Detail::High) <= most,
                "{rules:?} {size:?}"
            );
        }
        assert_eq!(rules.tokens(Some((0, 5)), Detail::High), most);
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = 0_u32;
        for at in 0..3 {
            group = group << 8 | u32::from(chunk.get(at).copied().unwrap_or(0));
        }
        for at in 0..=chunk.len() {
            out.push(BASE64[(group >> (18 - 6 * at) & 63) as usize] as char);
        }
        out.extend(std::iter::repeat_n('=', 3 - chunk.len()));
    }
    out
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend([8, 6, 0, 0, 0, 1, 2, 3, 4]);
    bytes
}

fn gif(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = b"GIF89a".to_vec();
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend([0xF7, 0, 0]);
    bytes
}

/// With a colour profile of `profile` bytes, and fill bytes, before the frame header.
fn jpeg(width: u16, height: u16, profile: u16, frame: u8) -> Vec<u8> {
    let mut bytes = vec![0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xE2];
    bytes.extend((profile + 2).to_be_bytes());
    bytes.extend(std::iter::repeat_n(0xFF, profile.into()));
    // A Huffman table is no frame, although its marker looks like one.
    bytes.extend([0xFF, 0xC4, 0, 3, 9, 0xFF, 0xFF, frame, 0, 11, 8]);
    bytes.extend(height.to_be_bytes());
    bytes.extend(width.to_be_bytes());
    bytes.extend([1, 1, 0x11, 0]);
    bytes
}

fn riff(kind: [u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = b"RIFF\x24\0\0\0WEBP".to_vec();
    bytes.extend(kind);
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn webp_lossy(width: u16, height: u16) -> Vec<u8> {
    let mut body = vec![0x30, 1, 0, 0x9D, 1, 0x2A];
    body.extend((width & 0x3FFF | 0x4000).to_le_bytes());
    body.extend((height & 0x3FFF).to_le_bytes());
    riff(*b"VP8 ", &body)
}

fn webp_lossless(width: u32, height: u32) -> Vec<u8> {
    let mut body = vec![0x2F];
    body.extend(((width - 1) | (height - 1) << 14).to_le_bytes());
    riff(*b"VP8L", &body)
}

fn webp_extended(width: u32, height: u32) -> Vec<u8> {
    let mut body = vec![0x10, 0, 0, 0];
    body.extend(&(width - 1).to_le_bytes()[..3]);
    body.extend(&(height - 1).to_le_bytes()[..3]);
    riff(*b"VP8X", &body)
}

#[test]
fn sizes_come_from_the_header_of_every_kind() {
    let rows = [
        (png(1920, 1080), (1920, 1080)),
        (png(70_000, 1), (70_000, 1)),
        (gif(640, 480), (640, 480)),
        (jpeg(4032, 3024, 0, 0xC0), (4032, 3024)),
        (jpeg(300, 200, 60_000, 0xC2), (300, 200)),
        (webp_lossy(1024, 768), (1024, 768)),
        (webp_lossless(1, 16_384), (1, 16_384)),
        (webp_extended(2_000, 3_000), (2_000, 3_000)),
    ];
    for (bytes, size) in rows {
        let bare = base64(&bytes);
        let url = format!("data:image/png;base64,{bare}");
        let broken_lines: String = bare
            .as_bytes()
            .chunks(76)
            .flat_map(|line| [std::str::from_utf8(line).unwrap(), "\r\n"])
            .collect();
        let url_safe = bare.replace('+', "-").replace('/', "_");
        for payload in [bare, url, broken_lines, url_safe] {
            assert_eq!(image_size(&payload), Some(size));
        }
    }
}

#[test]
fn what_is_no_image_has_no_size() {
    let truncated = base64(&png(10, 10)[..20]);
    let endless = base64(&jpeg(10, 10, 60_000, 0xC0).repeat(1)[..9_000]);
    let empty = base64(&png(0, 10));
    for payload in [
        "",
        "https://example.org/cat.png",
        "data:image/png,plain",
        "data:image/png",
        "not base64 at all!",
        "AAAA",
        &truncated,
        &endless,
        &empty,
    ] {
        assert_eq!(image_size(payload), None, "{payload:.40}");
    }
}

#[test]
fn blocks_of_every_dialect_are_measured() {
    let payload = base64(&png(1000, 1000));
    let url = format!("data:image/png;base64,{payload}");
    let measured = [
        json!({"type": "image_url", "image_url": {"url": url}}),
        json!({"type": "input_image", "image_url": url, "detail": "auto"}),
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": payload}}),
        json!({"inlineData": {"mimeType": "image/png", "data": payload}}),
        json!({"inline_data": {"mime_type": "image/png", "data": payload}}),
        json!({"image": {"format": "png", "source": {"bytes": payload}}}),
    ];
    for block in measured {
        assert_eq!(block_tokens(&CLAUDE, &block), 1_296, "{block:.60}");
    }
    let unknown = [
        json!({"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}),
        json!({"type": "image", "source": {"type": "file", "file_id": "f1"}}),
        json!({"fileData": {"fileUri": "gs://bucket/cat.png"}}),
        json!({}),
    ];
    for block in unknown {
        assert_eq!(block_tokens(&CLAUDE, &block), 1_568, "{block:.60}");
    }
    let low = json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}});
    assert_eq!(block_tokens(&GPT_4O, &low), 85);
    let levels = ImageRules::Levels {
        low: 280,
        medium: 560,
        high: 1_120,
        ultra: 2_240,
    };
    let asked = json!({"inlineData": {"data": payload},
        "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}});
    assert_eq!(block_tokens(&levels, &asked), 280);
}

fn block_tokens(rules: &ImageRules, block: &Value) -> u32 {
    rules.block_tokens(&block.capture().unwrap())
}

#[test]
fn sounds_are_as_long_as_their_bytes() {
    let mut wav = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0".to_vec();
    wav.extend(32_000_u32.to_le_bytes());
    wav.resize(64_000, 0);
    let seconds = sound_seconds(&base64(&wav)).unwrap();
    assert!((seconds - 2.0).abs() < 0.01, "{seconds}");
    let other = sound_seconds(&base64(&[7; 16_000])).unwrap();
    assert!((other - 2.0).abs() < 0.01, "{other}");
}

proptest! {
    #[test]
    fn any_size_has_a_count_within_the_rules(width in 1_u32..20_000, height in 1_u32..20_000) {
        let size = Some((width, height));
        for (rules, most) in [(CLAUDE, 1_568), (CLAUDE_4_7, 4_784), (GPT_4O, 85 + 8 * 170)] {
            let tokens = rules.tokens(size, Detail::High);
            prop_assert!((1..=most).contains(&tokens));
            let turned = rules.tokens(Some((height, width)), Detail::High);
            prop_assert_eq!(tokens, turned);
        }
        let tokens = patches(Some(1_536), 1.0).tokens(size, Detail::High);
        prop_assert!((1..=1_536).contains(&tokens));
    }

    #[test]
    fn no_payload_panics(payload in ".{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for payload in [payload, base64(&bytes)] {
            if let Some((width, height)) = image_size(&payload) {
                prop_assert!(width > 0 && height > 0);
            }
            if let Some(seconds) = sound_seconds(&payload) {
                prop_assert!(seconds >= 0.0);
            }
        }
    }

    #[test]
    fn a_header_with_a_random_size_is_read(width in 1_u16..16_000, height in 1_u16..16_000, profile in 0_u16..500) {
        let size = Some((u32::from(width), u32::from(height)));
        prop_assert_eq!(image_size(&base64(&jpeg(width, height, profile, 0xC1))), size);
        prop_assert_eq!(image_size(&base64(&gif(width, height))), size);
        prop_assert_eq!(image_size(&base64(&webp_lossy(width, height))), size);
        prop_assert_eq!(image_size(&base64(&webp_extended(width.into(), height.into()))), size);
    }
}
