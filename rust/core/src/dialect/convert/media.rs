//! Images, sounds, documents and videos in the five forms.
//!
//! A medium is recognised by its shape, whatever the dialect: frameworks mix the forms. What the
//! target cannot hold becomes a short note; base64 is never text.

use serde_json::{Value as Json, json};

use super::base64;
use super::loss::LossKind;
use crate::dialect::Dialect;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    Image,
    Audio,
    Document,
    Video,
}

impl Medium {
    pub(super) fn name(self) -> &'static str {
        self.loss().code()
    }

    pub(super) fn loss(self) -> LossKind {
        match self {
            Self::Image => LossKind::Image,
            Self::Audio => LossKind::Audio,
            Self::Document => LossKind::Document,
            Self::Video => LossKind::Video,
        }
    }

    fn of_mime(mime: &str) -> Self {
        match mime.split('/').next() {
            Some("image") => Self::Image,
            Some("audio") => Self::Audio,
            Some("video") => Self::Video,
            _ => Self::Document,
        }
    }
}

/// Where the bytes are.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// In standard base64.
    Base64(String),
    /// Behind an address that anybody may read, or one of a cloud (`gs://`, `s3://`).
    Url(String),
    /// With the provider, who alone knows the id.
    FileId(String),
    /// It is plain text.
    Text(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Media {
    pub(super) medium: Medium,
    pub(super) source: Source,
    pub(super) mime: Option<String>,
    pub(super) name: Option<String>,
    /// How closely an image is looked at (`low`, `high`, …).
    pub(super) detail: Option<String>,
}

/// What a medium is in the target.
pub(super) enum Written {
    Block(Json),
    /// A text document as a text.
    Text(String),
    /// The target has no form for it.
    Nothing,
}

fn text<'a>(json: &'a Json, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| json.get(key)?.as_str())
}

fn owned(json: &Json, keys: &[&str]) -> Option<String> {
    text(json, keys).map(str::to_owned)
}

/// The medium that a block holds; `None` if it is something else or of an unknown form.
pub(super) fn parse(block: &Json) -> Option<Media> {
    let kind = block.get("type").and_then(Json::as_str);
    match kind {
        Some("image_url" | "input_image" | "computer_screenshot") => parse_image(block),
        Some("document_url") => {
            let url = block.get("document_url")?.as_str()?;
            Some(located(Medium::Document, url, None))
        }
        Some("input_audio") => {
            let audio = block.get("input_audio").unwrap_or(block);
            let format = text(audio, &["format"]).unwrap_or("wav");
            let data = text(audio, &["data"])?;
            let mime = match format {
                "mp3" => "audio/mpeg".to_owned(),
                other => format!("audio/{other}"),
            };
            Some(encoded(Medium::Audio, data, Some(mime)))
        }
        Some("file" | "input_file") => parse_file(block.get("file").unwrap_or(block)),
        Some("image" | "document") => parse_anthropic(block),
        _ => parse_gemini(block).or_else(|| parse_bedrock(block)),
    }
}

fn media(medium: Medium, source: Source, mime: Option<String>) -> Media {
    Media {
        medium,
        source,
        mime,
        name: None,
        detail: None,
    }
}

fn encoded(medium: Medium, data: &str, mime: Option<String>) -> Media {
    media(medium, Source::Base64(base64::standard(data)), mime)
}

/// A medium behind an address; of a data URL, what is in it.
fn located(medium: Medium, url: &str, mime: Option<String>) -> Media {
    let data = url.strip_prefix("data:").and_then(|url| {
        let (head, data) = url.split_once(',')?;
        let head = head.strip_suffix(";base64")?;
        let mime = head.split(';').next().unwrap_or_default();
        Some(((!mime.is_empty()).then(|| mime.to_owned()), data))
    });
    match data {
        Some((found, data)) => encoded(medium, data, found.or(mime)),
        None => media(medium, Source::Url(url.to_owned()), mime),
    }
}

fn parse_image(block: &Json) -> Option<Media> {
    let image = block.get("image_url").unwrap_or(block);
    let url = image.as_str().or_else(|| text(image, &["url"]));
    let mut found = match (url, text(block, &["file_id"])) {
        (Some(url), _) => located(Medium::Image, url, None),
        (None, Some(id)) => media(Medium::Image, Source::FileId(id.to_owned()), None),
        (None, None) => return None,
    };
    found.detail = owned(image, &["detail"]).or_else(|| owned(block, &["detail"]));
    Some(found)
}

fn parse_file(file: &Json) -> Option<Media> {
    let mime = owned(file, &["format", "mime_type"]).filter(|mime| mime.contains('/'));
    let mut found = if let Some(data) = text(file, &["file_data"]) {
        if data.starts_with("data:") {
            located(Medium::Document, data, mime)
        } else {
            encoded(Medium::Document, data, mime)
        }
    } else if let Some(url) = text(file, &["file_url"]) {
        located(Medium::Document, url, mime)
    } else {
        let id = owned(file, &["file_id"])?;
        media(Medium::Document, Source::FileId(id), mime)
    };
    if let Some(mime) = &found.mime {
        found.medium = Medium::of_mime(mime);
    }
    found.name = owned(file, &["filename"]);
    Some(found)
}

fn parse_anthropic(block: &Json) -> Option<Media> {
    let medium = match block.get("type")?.as_str()? {
        "image" => Medium::Image,
        _ => Medium::Document,
    };
    let Some(source) = block.get("source") else {
        // `{"type": "image", "image": "data:…"}` and `{"type": "image", "url": …}` of frameworks.
        let url = text(block, &["image", "url"])?;
        return Some(located(medium, url, None));
    };
    let mime = owned(source, &["media_type"]);
    let mut found = match text(source, &["type"])? {
        "base64" => encoded(medium, text(source, &["data"])?, mime),
        "url" => located(medium, text(source, &["url"])?, mime),
        "file" => media(medium, Source::FileId(owned(source, &["file_id"])?), mime),
        "text" => media(medium, Source::Text(owned(source, &["data"])?), mime),
        _ => return None,
    };
    found.name = owned(block, &["title"]);
    Some(found)
}

fn parse_gemini(part: &Json) -> Option<Media> {
    let inline = part.get("inlineData").or_else(|| part.get("inline_data"));
    let file = part.get("fileData").or_else(|| part.get("file_data"));
    let blob = inline
        .filter(|blob| blob.is_object())
        .or_else(|| file.filter(|blob| blob.is_object()))?;
    let mime = owned(blob, &["mimeType", "mime_type"]);
    let medium = mime.as_deref().map_or(Medium::Document, Medium::of_mime);
    let mut found = match text(blob, &["data"]) {
        Some(data) => encoded(medium, data, mime),
        None => media(
            medium,
            Source::Url(owned(blob, &["fileUri", "file_uri"])?),
            mime,
        ),
    };
    found.name = owned(blob, &["displayName", "display_name"]);
    Some(found)
}

fn parse_bedrock(block: &Json) -> Option<Media> {
    let (medium, block) = [
        ("image", Medium::Image),
        ("document", Medium::Document),
        ("video", Medium::Video),
        ("audio", Medium::Audio),
    ]
    .into_iter()
    .find_map(|(key, medium)| Some((medium, block.get(key).filter(|it| it.is_object())?)))?;
    let format = text(block, &["format"]).unwrap_or_default();
    let mime = (!format.is_empty()).then(|| mime_of(medium, format));
    let source = block.get("source")?;
    let mut found = if let Some(data) = text(source, &["bytes"]) {
        encoded(medium, data, mime)
    } else if let Some(content) = text(source, &["text"]) {
        media(medium, Source::Text(content.to_owned()), mime)
    } else {
        let uri = owned(source.get("s3Location")?, &["uri"])?;
        media(medium, Source::Url(uri), mime)
    };
    found.name = owned(block, &["name"]);
    Some(found)
}

/// Formats of Bedrock documents and their media types.
const DOCUMENTS: [(&str, &str); 9] = [
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("doc", "application/msword"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    ("xls", "application/vnd.ms-excel"),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
];

/// The one video format whose media type is named otherwise.
const THREE_GP: (&str, &str) = ("three_gp", "video/3gpp");

fn mime_of(medium: Medium, format: &str) -> String {
    let document = DOCUMENTS.iter().find(|(name, _)| *name == format);
    match (medium, document) {
        (Medium::Document, Some((_, mime))) => (*mime).to_owned(),
        (Medium::Document, None) => format!("application/{format}"),
        (Medium::Video, _) if format == THREE_GP.0 => THREE_GP.1.to_owned(),
        (Medium::Audio, _) if format == "mp3" => "audio/mpeg".to_owned(),
        (Medium::Image | Medium::Audio | Medium::Video, _) => format!("{}/{format}", medium.name()),
    }
}

/// The Bedrock format of a media type.
fn format_of(medium: Medium, mime: &str) -> Option<&str> {
    match medium {
        Medium::Document => DOCUMENTS
            .iter()
            .find(|(_, known)| *known == mime)
            .map(|(name, _)| *name),
        Medium::Image => {
            let format = mime.strip_prefix("image/")?;
            let format = if format == "jpg" { "jpeg" } else { format };
            matches!(format, "png" | "jpeg" | "gif" | "webp").then_some(format)
        }
        Medium::Video if mime == THREE_GP.1 => Some(THREE_GP.0),
        Medium::Video => {
            let format = mime.strip_prefix("video/")?;
            matches!(
                format,
                "mkv" | "mov" | "mp4" | "webm" | "flv" | "mpeg" | "mpg" | "wmv"
            )
            .then_some(format)
        }
        Medium::Audio => audio_format(mime),
    }
}

fn audio_format(mime: &str) -> Option<&str> {
    match mime {
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        _ => mime.strip_prefix("audio/"),
    }
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Addresses that only Gemini itself can read.
fn is_geminis(url: &str) -> bool {
    url.starts_with("gs://") || url.starts_with("https://generativelanguage.googleapis.com/")
}

impl Media {
    /// The media type, where it is needed and not known the most likely one.
    fn mime(&self) -> &str {
        match (&self.mime, self.medium) {
            (Some(mime), _) => mime,
            (None, Medium::Image) => "image/png",
            (None, Medium::Audio) => "audio/wav",
            (None, Medium::Video) => "video/mp4",
            (None, Medium::Document) => match self.source {
                Source::Text(_) => "text/plain",
                _ => "application/pdf",
            },
        }
    }

    /// Its text, if it is a text document.
    fn plain_text(&self) -> Option<String> {
        match &self.source {
            Source::Text(text) => Some(text.clone()),
            Source::Base64(data) if self.medium == Medium::Document => {
                let is_text = self
                    .mime
                    .as_deref()
                    .is_some_and(|mime| mime.starts_with("text/"));
                let bytes = if is_text {
                    base64::decode(data)?
                } else {
                    return None;
                };
                String::from_utf8(bytes).ok()
            }
            _ => None,
        }
    }

    fn is_empty(&self) -> bool {
        let (Source::Base64(held) | Source::Url(held) | Source::FileId(held) | Source::Text(held)) =
            &self.source;
        held.is_empty()
    }

    fn as_text(&self) -> Written {
        self.plain_text().map_or(Written::Nothing, |text| {
            let name = self.name.as_deref().unwrap_or("untitled");
            Written::Text(format!("[document: {name}]\n{text}"))
        })
    }

    /// The short text that stands for it where the target has no form for it.
    pub(super) fn note(&self) -> String {
        let medium = self.medium.name();
        match &self.source {
            Source::Url(url) => format!("[{medium} left out: {url}]"),
            Source::FileId(id) => format!("[{medium} left out: file {id}]"),
            Source::Base64(_) | Source::Text(_) => format!("[{medium} left out: {}]", self.mime()),
        }
    }

    /// Its form in the target: in a user's message, or in a result (`is_result`).
    pub(super) fn write(&self, target: Dialect, is_result: bool) -> Written {
        let block = match target {
            // No provider takes a medium without data.
            _ if self.is_empty() => None,
            Dialect::OpenAi if is_result => None,
            Dialect::OpenAi => self.write_openai(),
            Dialect::Responses => self.write_responses(),
            Dialect::Anthropic => self.write_anthropic(),
            Dialect::Gemini => self.write_gemini(),
            Dialect::Bedrock => self.write_bedrock(is_result),
        };
        block.map_or_else(|| self.as_text(), Written::Block)
    }

    fn data_url(&self, data: &str) -> String {
        format!("data:{};base64,{data}", self.mime())
    }

    fn write_openai(&self) -> Option<Json> {
        match (self.medium, &self.source) {
            (Medium::Image, source) => {
                let url = match source {
                    Source::Base64(data) => self.data_url(data),
                    Source::Url(url) if is_web(url) && !is_geminis(url) => url.clone(),
                    _ => return None,
                };
                let mut image = json!({"url": url});
                if let Some(detail) = &self.detail {
                    image["detail"] = json!(detail);
                }
                Some(json!({"type": "image_url", "image_url": image}))
            }
            (Medium::Audio, Source::Base64(data)) => {
                let format = audio_format(self.mime())?;
                matches!(format, "wav" | "mp3").then(|| {
                    json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
                })
            }
            (Medium::Document, Source::Base64(data)) if self.mime() == "application/pdf" => {
                let name = self.name.as_deref().unwrap_or("document.pdf");
                Some(json!({"type": "file", "file": {
                    "filename": name, "file_data": self.data_url(data)}}))
            }
            _ => None,
        }
    }

    fn write_responses(&self) -> Option<Json> {
        match (self.medium, &self.source) {
            (Medium::Image, source) => {
                let url = match source {
                    Source::Base64(data) => self.data_url(data),
                    Source::Url(url) if is_web(url) && !is_geminis(url) => url.clone(),
                    _ => return None,
                };
                let mut image = json!({"type": "input_image", "image_url": url});
                if let Some(detail) = &self.detail {
                    image["detail"] = json!(detail);
                }
                Some(image)
            }
            (Medium::Document, Source::Base64(data)) if self.plain_text().is_none() => {
                let name = self.name.as_deref().unwrap_or("document.pdf");
                Some(json!({"type": "input_file", "filename": name,
                    "file_data": self.data_url(data)}))
            }
            (Medium::Document, Source::Url(url)) if is_web(url) && !is_geminis(url) => {
                Some(json!({"type": "input_file", "file_url": url}))
            }
            (Medium::Audio, _) => self.write_openai(),
            _ => None,
        }
    }

    fn write_anthropic(&self) -> Option<Json> {
        let source = match (self.medium, &self.source) {
            (Medium::Image, Source::Base64(data)) => {
                let format = format_of(Medium::Image, self.mime())?;
                json!({"type": "base64", "media_type": format!("image/{format}"), "data": data})
            }
            (Medium::Image | Medium::Document, Source::Url(url))
                if is_web(url) && !is_geminis(url) =>
            {
                json!({"type": "url", "url": url})
            }
            (Medium::Document, Source::Base64(data)) if self.mime() == "application/pdf" => {
                json!({"type": "base64", "media_type": "application/pdf", "data": data})
            }
            (Medium::Document, _) => {
                json!({"type": "text", "media_type": "text/plain", "data": self.plain_text()?})
            }
            _ => return None,
        };
        let kind = self.medium.name();
        let mut block = json!({"type": kind, "source": source});
        if let (Medium::Document, Some(name)) = (self.medium, &self.name) {
            block["title"] = json!(name);
        }
        Some(block)
    }

    fn write_gemini(&self) -> Option<Json> {
        match &self.source {
            Source::Base64(data) => {
                Some(json!({"inlineData": {"mimeType": self.mime(), "data": data}}))
            }
            Source::Url(url) if is_geminis(url) => {
                Some(json!({"fileData": {"mimeType": self.mime(), "fileUri": url}}))
            }
            _ => None,
        }
    }

    fn write_bedrock(&self, is_result: bool) -> Option<Json> {
        // Results take no sound.
        if is_result && self.medium == Medium::Audio {
            return None;
        }
        let source = match &self.source {
            Source::Base64(data) => json!({"bytes": data}),
            Source::Text(text) if self.medium == Medium::Document && !text.trim().is_empty() => {
                json!({"text": text})
            }
            Source::Url(uri) if uri.starts_with("s3://") => json!({"s3Location": {"uri": uri}}),
            _ => return None,
        };
        let format = format_of(self.medium, self.mime())?;
        let mut block = json!({"format": format});
        if self.medium == Medium::Document {
            block["name"] = json!(document_name(self.name.as_deref().unwrap_or("document")));
        }
        block["source"] = source;
        let mut outer = serde_json::Map::new();
        outer.insert(self.medium.name().to_owned(), block);
        Some(Json::Object(outer))
    }
}

/// A document's name in Bedrock's alphabet: letters, digits, single spaces, hyphens, brackets.
fn document_name(name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-()[]".contains(*c);
    let mut found = String::new();
    for c in name.chars().take(180) {
        if is_plain(&c) {
            found.push(c);
        } else if !found.ends_with(' ') {
            found.push(' ');
        }
    }
    let found = found.trim();
    if found.is_empty() { "document" } else { found }.to_owned()
}
