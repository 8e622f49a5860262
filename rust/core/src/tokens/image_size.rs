//! The size of an image from the first bytes of its base64 payload: PNG, JPEG, GIF, WebP.
//!
//! Bytes are decoded one by one and only as far as the size: a few dozen, for a JPEG up to its frame
//! header behind colour profiles and thumbnails, at most 1 MiB.

/// How far a JPEG is searched for its frame header, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Width and height in pixels; `None` if the payload is no image of a known kind.
///
/// `payload` is base64 in either alphabet, white space allowed, bare or as a `data:` URL.
pub fn image_size(payload: &str) -> Option<(u32, u32)> {
    let mut bytes = Bytes::new(base64_of(payload)?);
    let first: [u8; 4] = bytes.take()?;
    let size = match &first {
        b"\x89PNG" => png(&mut bytes),
        b"GIF8" => gif(&mut bytes),
        b"RIFF" => webp(&mut bytes),
        [0xFF, 0xD8, 0xFF, marker] => jpeg(&mut bytes, *marker),
        _ => None,
    };
    size.filter(|&(width, height)| width > 0 && height > 0)
}

/// Seconds of a sound: by the byte rate of a WAV file, else as if it had 64 kbit a second, which
/// speech rarely goes below.
pub fn sound_seconds(payload: &str) -> Option<f64> {
    const BYTES_PER_SECOND: f64 = 8_000.0;
    let base64 = base64_of(payload)?;
    let length = base64.len() as f64 * 0.75;
    let rate = wav_byte_rate(&mut Bytes::new(base64)).filter(|&rate| rate > 0);
    Some(length / rate.map_or(BYTES_PER_SECOND, f64::from))
}

fn wav_byte_rate(bytes: &mut Bytes<'_>) -> Option<u32> {
    let riff: [u8; 4] = bytes.take()?;
    bytes.skip(4)?;
    let wave: [u8; 4] = bytes.take()?;
    if (&riff, &wave) != (b"RIFF", b"WAVE") {
        return None;
    }
    // "fmt ", its length, format, channels, sample rate.
    bytes.skip(16)?;
    bytes.take().map(u32::from_le_bytes)
}

/// The base64 of a payload; `None` for a URL that has to be fetched.
fn base64_of(payload: &str) -> Option<&str> {
    let payload = payload.trim_start();
    match payload.get(..5) {
        Some(scheme) if scheme.eq_ignore_ascii_case("data:") => {
            let (head, data) = payload.split_once(',')?;
            head.to_ascii_lowercase()
                .ends_with(";base64")
                .then_some(data)
        }
        _ if payload.contains("://") => None,
        _ => Some(payload),
    }
}

/// The bytes of a base64 text, decoded as they are asked for.
struct Bytes<'a> {
    text: std::slice::Iter<'a, u8>,
    bits: u32,
    held: u32,
    left: usize,
}

impl<'a> Bytes<'a> {
    fn new(base64: &'a str) -> Self {
        Self {
            text: base64.as_bytes().iter(),
            bits: 0,
            held: 0,
            left: MAX_BYTES,
        }
    }

    fn next(&mut self) -> Option<u8> {
        self.left = self.left.checked_sub(1)?;
        while self.held < 8 {
            let six = match *self.text.next()? {
                byte @ b'A'..=b'Z' => byte - b'A',
                byte @ b'a'..=b'z' => byte - b'a' + 26,
                byte @ b'0'..=b'9' => byte - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                b' ' | b'\n' | b'\r' | b'\t' => continue,
                _ => return None,
            };
            self.bits = self.bits << 6 | u32::from(six);
            self.held += 6;
        }
        self.held -= 8;
        Some((self.bits >> self.held) as u8)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.next()?;
        }
        Some(bytes)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        for _ in 0..count {
            self.next()?;
        }
        Some(())
    }
}

fn png(bytes: &mut Bytes<'_>) -> Option<(u32, u32)> {
    // The rest of the signature, and the length and name of the header chunk.
    bytes.skip(4 + 8)?;
    let width = bytes.take().map(u32::from_be_bytes)?;
    Some((width, bytes.take().map(u32::from_be_bytes)?))
}

fn gif(bytes: &mut Bytes<'_>) -> Option<(u32, u32)> {
    bytes.skip(2)?;
    let width = bytes.take().map(u16::from_le_bytes)?;
    let height = bytes.take().map(u16::from_le_bytes)?;
    Some((width.into(), height.into()))
}

fn webp(bytes: &mut Bytes<'_>) -> Option<(u32, u32)> {
    bytes.skip(4)?;
    if &bytes.take::<4>()? != b"WEBP" {
        return None;
    }
    let kind: [u8; 4] = bytes.take()?;
    bytes.skip(4)?;
    match &kind {
        b"VP8 " => {
            // Frame tag and start code; two bits of each side are a scale.
            bytes.skip(6)?;
            let width = bytes.take().map(u16::from_le_bytes)?;
            let height = bytes.take().map(u16::from_le_bytes)?;
            Some((u32::from(width & 0x3FFF), u32::from(height & 0x3FFF)))
        }
        b"VP8L" => {
            bytes.skip(1)?;
            let sides = bytes.take().map(u32::from_le_bytes)?;
            Some(((sides & 0x3FFF) + 1, (sides >> 14 & 0x3FFF) + 1))
        }
        b"VP8X" => {
            bytes.skip(4)?;
            let mut side = || {
                let [a, b, c] = bytes.take::<3>()?;
                Some(u32::from_le_bytes([a, b, c, 0]) + 1)
            };
            Some((side()?, side()?))
        }
        _ => None,
    }
}

fn jpeg(bytes: &mut Bytes<'_>, mut marker: u8) -> Option<(u32, u32)> {
    loop {
        match marker {
            // Frame headers: all of C0 to CF but tables (C4), extensions (C8) and conditioning (CC).
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                bytes.skip(3)?;
                let height = bytes.take().map(u16::from_be_bytes)?;
                let width = bytes.take().map(u16::from_be_bytes)?;
                return Some((width.into(), height.into()));
            }
            // Markers without a segment, and fill bytes.
            0x01 | 0xD0..=0xD8 | 0xFF => {}
            // The scan starts, or the file ends, without a frame.
            0xD9 | 0xDA => return None,
            _ => {
                let length = bytes.take().map(u16::from_be_bytes)?;
                bytes.skip(usize::from(length).checked_sub(2)?)?;
            }
        }
        if marker != 0xFF && bytes.next()? != 0xFF {
            return None;
        }
        marker = bytes.next()?;
    }
}
