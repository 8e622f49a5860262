//! Base64, as far as text documents need it.

/// The same data in the standard alphabet: the Python client of Gemini writes the other one.
pub(super) fn standard(data: &str) -> String {
    data.chars()
        .filter(|c| !c.is_ascii_whitespace())
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect()
}

/// The bytes of standard base64, padding optional; `None` if it is none.
pub(super) fn decode(data: &str) -> Option<Vec<u8>> {
    let data = data.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(data.len() / 4 * 3 + 2);
    let (mut held, mut bits) = (0_u32, 0);
    for byte in data.bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = (held << 6 | u32::from(six)) & 0xff_ffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    (data.len() % 4 != 1).then_some(bytes)
}
