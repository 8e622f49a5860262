//! Kinds of values, and sets of them.

/// What a value is. Where two kinds claim the same bytes, the first of this list has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// The block of a private key, PEM or alike.
    PrivateKey,
    /// A JSON Web Token (RFC 7519).
    Jwt,
    /// An API key or token: of a vendor, by its prefix, or of any name that says so.
    ApiKey,
    /// A URL with a password in it.
    ConnectionString,
    /// What follows `Bearer` or `Authorization: Basic`.
    BearerToken,
    /// What a password is said or set to be.
    Password,
    /// A Korean resident or foreigner registration number.
    ResidentNumber,
    /// The number of a payment card.
    Card,
    /// An international bank account number (ISO 13616).
    Iban,
    /// An e-mail address.
    Email,
    /// A phone number.
    Phone,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::PrivateKey,
        Self::Jwt,
        Self::ApiKey,
        Self::ConnectionString,
        Self::BearerToken,
        Self::Password,
        Self::ResidentNumber,
        Self::Card,
        Self::Iban,
        Self::Email,
        Self::Phone,
    ];

    /// Its name in settings and spans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PrivateKey => "private_key",
            Self::Jwt => "jwt",
            Self::ApiKey => "api_key",
            Self::ConnectionString => "connection_string",
            Self::BearerToken => "bearer_token",
            Self::Password => "password",
            Self::ResidentNumber => "resident_number",
            Self::Card => "card",
            Self::Iban => "iban",
            Self::Email => "email",
            Self::Phone => "phone",
        }
    }

    /// Its name in placeholders.
    pub const fn label(self) -> &'static str {
        match self {
            Self::PrivateKey => "PRIVATE_KEY",
            Self::Jwt => "JWT",
            Self::ApiKey => "API_KEY",
            Self::ConnectionString => "CONNECTION_STRING",
            Self::BearerToken => "BEARER_TOKEN",
            Self::Password => "PASSWORD",
            Self::ResidentNumber => "RESIDENT_NUMBER",
            Self::Card => "CARD",
            Self::Iban => "IBAN",
            Self::Email => "EMAIL",
            Self::Phone => "PHONE",
        }
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// Every kind.
    pub const ALL: Self = Self((1 << Kind::ALL.len()) - 1);
    /// No kind.
    pub const NONE: Self = Self(0);
    /// What opens something.
    pub const SECRETS: Self = Self((1 << Kind::ResidentNumber as u8) - 1);
    /// What belongs to a person.
    pub const PERSONAL: Self = Self(Self::ALL.0 & !Self::SECRETS.0);

    /// With one kind more.
    #[must_use]
    pub const fn with(self, kind: Kind) -> Self {
        Self(self.0 | (1 << kind as u8))
    }

    /// The kinds of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a kind is in it.
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// The set that a name stands for: of a kind, or `secrets` or `personal`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "secrets" => Some(Self::SECRETS),
            "personal" => Some(Self::PERSONAL),
            _ => Kind::ALL
                .into_iter()
                .find(|kind| kind.name() == name)
                .map(|kind| Self::NONE.with(kind)),
        }
    }
}
