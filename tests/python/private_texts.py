"""Texts with personal data and secrets, labelled, and texts that only look so.

Everything is made up from published format facts: prefixes and lengths as the vendors document
them, check digits by their standards (ISO/IEC 7812 for cards, ISO 13616 for IBANs), numbering plans
(ITU-T E.164, the NANP, the Korean plan), RFC 7519, RFC 7468 and RFC 3986. The generator knows
nothing of the scanner. A seed gives the same texts everywhere.
"""

from __future__ import annotations

import base64
import json
import random
import string
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FRAMES", "NEGATIVES", "POSITIVES", "Sample", "negatives", "positives"]

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = LOWER + UPPER + DIGITS
URL_SAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
HEX = "0123456789abcdef"


@dataclass(frozen=True)
class Sample:
    """A text; ``value`` is what must go, of ``kind``; a negative has neither."""

    text: str
    kind: str
    value: str
    family: str


class Maker:
    """Draws values; one seed, one sequence."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - test data

    def some(self, alphabet: str, count: int) -> str:
        return "".join(self.random.choices(alphabet, k=count))

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def digits(self, count: int) -> str:
        return self.some(DIGITS, count)

    def mixed(self, alphabet: str, count: int) -> str:
        """Has a digit, a capital and a small letter, as random keys of that length nearly do."""
        body = self.some(alphabet, count - 3) + self.one(*DIGITS) + self.one(*UPPER)
        letters = [*body, self.one(*LOWER)]
        self.random.shuffle(letters)
        return "".join(letters)

    def day(self, first: date = date(1935, 1, 1), last: date = date(2023, 12, 31)) -> date:
        return first + timedelta(days=self.number(0, (last - first).days))


def luhn_digit(digits: str) -> str:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


# --- personal data ---


def resident_digits(make: Maker, *, foreigner: bool) -> str:
    born = make.day()
    century = 1 if born.year < 2000 else 3
    sex = make.number(0, 1)
    head = f"{born:%y%m%d}{century + sex + (4 if foreigner else 0)}"
    return head + make.digits(5)


def checked_resident(make: Maker, *, foreigner: bool) -> str:
    body = resident_digits(make, foreigner=foreigner)
    weights = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
    total = sum(int(digit) * weight for digit, weight in zip(body, weights, strict=True))
    return body + str(((13 if foreigner else 11) - total % 11) % 10)


def resident(make: Maker) -> str:
    foreigner = make.number(0, 2) == 0
    if make.number(0, 2) == 0:
        return checked_resident(make, foreigner=foreigner)
    digits = resident_digits(make, foreigner=foreigner) + make.digits(1)
    return f"{digits[:6]}-{digits[6:]}"


def email(make: Maker) -> str:
    first = make.one("jiwon", "minsu.kim", "anna", "o.brien", "dev+alerts", "k_lee", "x", "R2D2")
    tail = make.one("", make.digits(2), "." + make.some(LOWER, 5), "-" + make.some(LOWER, 3))
    host = make.one("example", "mail.example", "acme-corp", "sub.team.acme", make.some(LOWER, 7))
    return f"{first}{tail}@{host}.{make.one('com', 'co.kr', 'org', 'io', 'net', 'ac.kr', 'dev')}"


def korean_phone(make: Maker) -> str:
    joint = make.one("-", "-", "-", ".", " ")
    last = make.digits(4)
    middle = str(make.number(1000, 9999))
    form = make.number(0, 6)
    if form == 0:
        return f"010{middle}{last}"
    if form == 1:
        return f"+82-10-{middle}-{last}"
    if form == 2:
        return f"+82 10 {middle} {last}"
    if form == 3:
        area = make.one("02", "031", "032", "041", "051", "053", "062", "064", "070")
        return f"{area}-{make.number(200, 999) if area != '070' else middle}-{last}"
    if form == 4:
        return f"{make.one('011', '016', '017', '019')}-{make.number(200, 999)}-{last}"
    return f"010{joint}{middle}{joint}{last}"


def foreign_phone(make: Maker) -> str:
    area = f"{make.number(2, 9)}{make.number(0, 8)}{make.number(2, 9)}"
    exchange = f"{make.number(2, 9)}{make.number(0, 9)}{make.number(2, 9)}"
    line = make.digits(4)
    some = make.digits
    return make.one(
        f"({area}) {exchange}-{line}",
        f"{area}-{exchange}-{line}",
        f"{area}.{exchange}.{line}",
        f"+1 {area} {exchange} {line}",
        f"+1-{area}-{exchange}-{line}",
        f"+1{area}{exchange}{line}",
        f"+1 ({area}) {exchange}-{line}",
        f"+44 20 {make.number(3, 8)}{some(3)} {some(4)}",
        f"+44 7{some(3)} {some(6)}",
        f"+49 30 {some(8)}",
        f"+33 6 {some(2)} {some(2)} {some(2)} {some(2)}",
        f"+81-90-{make.number(1000, 9999)}-{some(4)}",
        f"+86 13{some(1)} {some(4)} {some(4)}",
        f"+91 9{some(4)} {some(5)}",
        f"+6591{some(6)}",
        f"+358 40 {some(7)}",
    )


CARDS: Final = (
    ("4", 16),
    ("4", 16),
    ("51", 16),
    ("55", 16),
    ("2221", 16),
    ("2720", 16),
    ("34", 15),
    ("37", 15),
    ("6011", 16),
    ("65", 16),
    ("3528", 16),
    ("3589", 16),
    ("36", 14),
    ("62", 16),
)


def card(make: Maker) -> str:
    prefix, length = make.random.choice(CARDS)
    body = prefix + make.digits(length - len(prefix) - 1)
    digits = body + luhn_digit(body)
    joint = make.one("", " ", "-")
    cuts = {16: (4, 8, 12), 15: (4, 10), 14: (4, 10)}[length]
    edges = (0, *cuts, length)
    return joint.join(digits[a:b] for a, b in pairwise(edges))


IBANS: Final = {
    "DE": "n18",
    "GB": "a4n14",
    "FR": "n10c11n2",
    "NL": "a4n10",
    "ES": "n20",
    "CH": "n5c12",
    "IT": "a1n10c12",
    "NO": "n11",
    "MT": "a4n5c18",
    "AE": "n19",
}


def iban(make: Maker) -> str:
    country = make.one(*IBANS)
    shape, body = IBANS[country], ""
    for letter, count in [(part[0], int(part[1:])) for part in split_shape(shape)]:
        body += make.some({"n": DIGITS, "a": UPPER, "c": DIGITS + UPPER}[letter], count)
    moved = "".join(str(int(char, 36)) for char in f"{body}{country}00")
    whole = f"{country}{98 - int(moved) % 97:02}{body}"
    if make.number(0, 1):
        return whole
    return " ".join(whole[at : at + 4] for at in range(0, len(whole), 4))


def split_shape(shape: str) -> list[str]:
    parts: list[str] = []
    for char in shape:
        if char.isalpha():
            parts.append(char)
        else:
            parts[-1] += char
    return parts


# --- secrets ---


def api_key(make: Maker) -> str:
    some, mixed, digits = make.some, make.mixed, make.digits
    marker = base64.b64encode(b"OpenAI").decode()[:8]  # in the middle of OpenAI's keys
    forms: list[Callable[[], str]] = [
        lambda: f"sk-{mixed(ALNUM, 20)}{marker}{mixed(ALNUM, 20)}",
        lambda: f"sk-{mixed(ALNUM, 48)}",
        lambda: f"sk-proj-{mixed(URL_SAFE, 74)}{marker}{mixed(URL_SAFE, 74)}",
        lambda: f"sk-svcacct-{mixed(URL_SAFE, 60)}",
        lambda: f"sk-ant-api03-{mixed(URL_SAFE, 93)}AA",
        lambda: f"sk-ant-admin01-{mixed(URL_SAFE, 93)}AA",
        lambda: f"sk-or-v1-{some(HEX, 64)}",
        lambda: make.one("AKIA", "ASIA") + some(UPPER + "234567", 16),
        lambda: make.one("ghp_", "gho_", "ghu_", "ghs_", "ghr_") + mixed(ALNUM, 36),
        lambda: f"github_pat_{mixed(ALNUM, 22)}_{mixed(ALNUM, 59)}",
        lambda: f"glpat-{mixed(URL_SAFE, 20)}",
        lambda: f"glrt-{mixed(URL_SAFE, 20)}",
        lambda: f"xoxb-{digits(12)}-{digits(13)}-{mixed(ALNUM, 24)}",
        lambda: f"xoxp-{digits(11)}-{digits(12)}-{digits(12)}-{some(HEX, 32)}",
        lambda: f"xapp-1-A{some(UPPER + DIGITS, 10)}-{digits(13)}-{some(HEX, 64)}",
        lambda: make.one("sk_live_", "sk_test_", "rk_live_") + mixed(ALNUM, 24),
        lambda: f"whsec_{mixed(ALNUM, 32)}",
        lambda: f"AIza{mixed(URL_SAFE, 35)}",
        lambda: f"GOCSPX-{mixed(URL_SAFE, 28)}",
        lambda: f"ya29.{mixed(URL_SAFE, 120)}",
        lambda: f"{mixed(ALNUM, 3)}8Q~{mixed(ALNUM + '_.~-', 33)}{some(ALNUM, 1)}",
        lambda: f"npm_{mixed(ALNUM, 36)}",
        lambda: f"pypi-AgEIcHlwaS5vcmc{mixed(URL_SAFE, 150)}",
        lambda: f"hf_{mixed(ALNUM, 34)}",
        lambda: f"SK{some(HEX, 32)}",
        lambda: f"SG.{mixed(URL_SAFE, 22)}.{mixed(URL_SAFE, 43)}",
        lambda: f"{make.number(10**8, 10**10 - 1)}:AA{mixed(URL_SAFE, 33)}",
        lambda: f"shpat_{some(HEX, 32)}",
        lambda: f"dop_v1_{some(HEX, 64)}",
        lambda: f"gsk_{mixed(ALNUM, 52)}",
        lambda: f"r8_{mixed(ALNUM, 37)}",
        lambda: f"pplx-{mixed(ALNUM, 48)}",
        lambda: f"lin_api_{mixed(ALNUM, 40)}",
        lambda: f"dckr_pat_{mixed(URL_SAFE, 27)}",
        lambda: f"glsa_{mixed(ALNUM, 32)}_{some(HEX, 8)}",
        lambda: f"hvs.{mixed(URL_SAFE, 90)}",
    ]
    return make.random.choice(forms)()


def named_key(make: Maker) -> tuple[str, str]:
    """A key that only its name tells, and the text around it."""
    value = make.one(
        make.mixed(BASE64, 40), make.some(HEX, 32), make.mixed(ALNUM, 40), make.mixed(URL_SAFE, 43)
    )
    name = make.one(
        "AWS_SECRET_ACCESS_KEY",
        "aws_secret_access_key",
        "SecretAccessKey",
        "client_secret",
        "api_key",
        "apiKey",
        "X-API-Key",
        "TWILIO_AUTH_TOKEN",
        "access_token",
        "SECRET_KEY",
        "DISCORD_TOKEN",
    )
    around = make.one(
        "{name}={value}",
        '"{name}": "{value}"',
        "{name}: {value}",
        "export {name}='{value}'",
        '{name} = "{value}"',
    )
    return around.format(name=name, value=value), value


def azure_storage(make: Maker) -> tuple[str, str]:
    value = make.mixed(BASE64, 86) + "=="
    head = f"DefaultEndpointsProtocol=https;AccountName={make.some(LOWER, 8)};AccountKey="
    return f"{head}{value};EndpointSuffix=core.windows.net", value


def private_key(make: Maker) -> str:
    name = make.one("RSA ", "EC ", "", "OPENSSH ", "ENCRYPTED ", "DSA ")
    body = make.some(BASE64, make.number(3, 24) * 64 - 20) + "="
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN {name}PRIVATE KEY-----\n{lines}\n-----END {name}PRIVATE KEY-----"


def url_safe(value: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def jwt(make: Maker) -> str:
    head = url_safe({"alg": make.one("HS256", "RS256", "ES256"), "typ": "JWT"})
    body = url_safe({"sub": make.digits(10), "name": make.some(LOWER, 6), "iat": 1700000000})
    return f"{head}.{body}.{make.some(URL_SAFE, int(make.one('43', '86', '342')))}"


def password(make: Maker) -> str:
    word = make.one("hunter", "Sommer", "tiger", "qwerty", "letme", "Korea", "p4ss")
    return word + make.one("!", "", "#", "_", "@") + make.digits(make.number(2, 5))


def connection(make: Maker) -> str:
    scheme = make.one(
        "postgresql",
        "postgres",
        "mysql",
        "mongodb",
        "mongodb+srv",
        "redis",
        "rediss",
        "amqp",
        "postgresql+psycopg",
        "mssql+pyodbc",
        "ftp",
        "https",
    )
    secret = quote(password(make), safe="") if make.number(0, 2) else make.mixed(ALNUM, 18)
    user = make.one("app", "root", "svc_user", "") if scheme.startswith("redis") else "app"
    host = make.one("localhost", "db.internal", "10.0.0.5", "cluster0.example.net")
    port = make.one("", ":5432", ":6379")
    return f"{scheme}://{user}:{secret}@{host}{port}/{make.one('prod', '0', 'main?ssl=true')}"


def bearer(make: Maker) -> tuple[str, str]:
    value = make.one(
        make.mixed(URL_SAFE, 32),
        make.some(HEX, 40),
        make.mixed(BASE64, 64) + "=",
        f"{make.mixed(ALNUM, 12)}.{make.mixed(ALNUM, 20)}",
    )
    around = make.one(
        "Authorization: Bearer {value}",
        '"authorization": "Bearer {value}"',
        "curl -H 'Authorization: bearer {value}' https://api.example.com/v1/me",
        "headers={{'Authorization': 'Bearer {value}'}}",
    )
    return around.format(value=value), value


def named_password(make: Maker) -> tuple[str, str]:
    value = password(make)
    around = make.one(
        "password={value}",
        "DB_PASSWORD={value}",
        'password: "{value}"',
        '"password": "{value}"',
        "passwd = '{value}'",
        "My password is {value}",
        "비밀번호는 {value} 입니다",
        "비밀번호: {value}",
        "PGPASSWORD='{value}'",
        "pwd={value};",
        "Password: {value}",
        "https://example.com/login?user=kim&password={value}&next=1",
    )
    return around.format(value=value), value


# --- around it ---

FRAMES: Final[tuple[Callable[[str], str], ...]] = (
    lambda value: value,
    lambda value: f"Please note {value}, and answer by noon.",
    lambda value: f"고객이 남긴 정보는 {value} 입니다.",
    lambda value: f"값은 {value}이고 확인했습니다",
    lambda value: json.dumps({"id": 7, "note": value, "ok": True}),
    lambda value: json.dumps({"text": f"line\n{value}\nend"}),
    lambda value: f"2024-03-15 10:22:01,123 INFO worker-3 got {value} in 12 ms",
    lambda value: f"| 3 | {value} | done |",
    lambda value: f"VALUE={value}\nDEBUG=1\n",
    lambda value: f"x = '{value}'  # from the form",
    lambda value: f"🙂🙂 ({value}) 你好",
    lambda value: f"- {value}\n- next",
    lambda value: f"<td>{value}</td>",
)

POSITIVES: Final[dict[str, Callable[[Maker], str | tuple[str, str]]]] = {
    "resident_number": resident,
    "email": email,
    "phone/korean": korean_phone,
    "phone/foreign": foreign_phone,
    "card": card,
    "iban": iban,
    "api_key/vendor": api_key,
    "api_key/named": named_key,
    "api_key/azure": azure_storage,
    "private_key": private_key,
    "jwt": jwt,
    "connection_string": connection,
    "bearer_token": bearer,
    "password": named_password,
}


def positives(seed: int, each: int) -> list[Sample]:
    """``each`` samples of every family of values."""
    make = Maker(seed)
    samples: list[Sample] = []
    for family, draw in POSITIVES.items():
        for _ in range(each):
            drawn = draw(make)
            text, value = (drawn, drawn) if isinstance(drawn, str) else drawn
            framed = make.random.choice(FRAMES)(text)
            if value not in framed:  # JSON escapes its line breaks and quotes
                value = json.dumps(value)[1:-1]
            samples.append(Sample(framed, family.partition("/")[0], value, family))
    return samples


# --- what only looks so ---


def bad_card(make: Maker) -> str:
    prefix, length = make.random.choice(CARDS)
    body = prefix + make.digits(length - len(prefix) - 1)
    return body + str((int(luhn_digit(body)) + make.number(1, 9)) % 10)


def bad_resident(make: Maker) -> str:
    good = checked_resident(make, foreigner=False)
    return make.one(
        good[:12] + str((int(good[12]) + make.number(1, 9)) % 10),
        f"{make.number(40, 99)}{make.number(13, 99)}{make.digits(2)}-1{make.digits(6)}",
        f"{good[:2]}0230-1{make.digits(6)}",
        f"{make.digits(5)}-{make.digits(7)}",
    )


def bad_iban(make: Maker) -> str:
    good = iban(make).replace(" ", "")
    return good[:2] + f"{(int(good[2:4]) + make.number(1, 90)) % 97:02}" + good[4:]


def uuid(make: Maker) -> str:
    return "-".join(make.some(HEX, count) for count in (8, 4, 4, 4, 12))


def a_hash(make: Maker) -> str:
    return make.one(
        make.some(HEX, 40),
        make.some(HEX, 64),
        make.some(HEX, 32),
        make.some(HEX, 7),
        f"sha256:{make.some(HEX, 64)}",
        f"sha512-{make.some(BASE64, 86)}==",
        f"commit {make.some(HEX, 40)}",
        f'ETag: "{make.some(HEX, 32)}"',
    )


def order(make: Maker) -> str:
    some = make.digits
    return make.one(
        f"ORD-{some(10)}",
        f"#{some(8)}",
        f"INV-2024-{some(6)}",
        f"주문번호 {some(12)}",
        f"order {some(3)}-{some(7)}-{some(7)}",
        f"TRK{some(12)}KR",
        f"PO {some(5)}-{some(2)}",
        f"송장 {some(4)}-{some(4)}-{some(2)}",
        f"ticket {some(6)}",
        f"SKU-{some(4)}-{some(4)}",
    )


def a_date(make: Maker) -> str:
    day = make.day()
    return make.one(
        f"{day:%Y-%m-%d}",
        f"{day:%Y.%m.%d}",
        f"{day:%d.%m.%Y}",
        f"{day:%Y%m%d}",
        f"{day:%Y-%m-%d %H:%M:%S.123456}",
        f"{day:%Y%m%d}-{make.digits(4)}",
        f"{day:%Y-%m-%d} ~ {day:%Y-%m-%d}",
        f"{day:%y%m%d}",
        f"{make.number(10**9, 2 * 10**9)}",
        f"{make.number(16 * 10**11, 17 * 10**11 - 1)}",
        f"{day:%Y-%m-%dT%H:%M:%S+09:00}",
    )


def version(make: Maker) -> str:
    number = make.number
    return make.one(
        f"v{number(0, 20)}.{number(0, 90)}.{number(0, 900)}",
        f"python{number(3, 4)}.{number(0, 20)}",
        f"pkg@{number(0, 20)}.{number(0, 9)}.{number(0, 9)}",
        f"10.0.{number(0, 255)}.{number(0, 255)}",
        f"1.{number(0, 9)}.0-rc.{number(0, 9)}+build.{make.digits(4)}",
        f"{number(100, 999)}.{number(100, 999)}",
        f"@types/node@{number(10, 22)}.{number(0, 9)}.x",
        f"Chrome/120.0.{make.digits(4)}.{make.digits(3)}",
        f"actions/checkout@v{number(1, 5)}",
        f"192.168.{number(0, 255)}.{number(0, 255)}:8080",
        f"≥ {number(1, 9)}.{make.digits(3)}.{make.digits(4)}",
    )


CODE: Final = (
    'password = os.environ["DB_PASSWORD"]',
    "def login(user: str, password: str) -> Token:",
    "password: ${DB_PASSWORD}",
    "token = get_token(request)",
    "api_key=settings.OPENAI_API_KEY,",
    "if password == stored_password:",
    '<input type="password" name="password">',
    "password: ********",
    "Password is required",
    "비밀번호는 8자 이상이어야 합니다",
    '{"password": "This field is required."}',
    "max_tokens=4096, token_count: 1234567",
    "client_secret: <your-client-secret>",
    'api_key = "YOUR_API_KEY"',
    "secret: null",
    "git clone git@github.com:acme/tools.git",
    "background: url(logo@2x.png)",
    "result = weights@inputs.transpose()",
    "@app.route('/users/<int:id>')",
    "the bearer of this letter",
    "Bearer authentication is used",
    "Authorization: Bearer $TOKEN",
    "-----BEGIN CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----",
    "postgresql://localhost:5432/app",
    "https://example.com/a/b?x=1#frag",
    "redis://cache:6379/0",
    "eyJhbGciOi is how headers start",
    "sk-learn-compatible-estimators",
    "import sklearn as sk",
    "desk-chair task-42 risk-free",
    "const TOKEN_TYPES = [1, 2, 3];",
    "postgres://user:${PASS}@db/app",
    "tokenizer: o200k_base",
    "self.password = password",
    "password=password)",
    "npm_config_registry=https://registry.test",
    "hf_hub_download(repo_id)",
    "AKIA is the prefix of access keys",
    "AIza starts Google keys",
    "def reset_password(token: ResetToken)",
    "secret = hmac.new(key, body).hexdigest()",
    "1 + 12345678 * 2",
    "rows 1000-2000",
    "tel: see the list",
    "ssh admin@localhost",
    "암호화 방식: AES-256",
    "토큰: 1234개 사용",
    "next_page_token: null",
    "for i in range(1000000):",
    "0x7ffdeadbeef0",
    "3.141592653589793",
    "@@ -120,7 +120,9 @@",
    "+123 -45 lines",
    "12,345,678 KRW",
    "1234 5678 9012 3456 rows",
    "matrix 100 200 300 400",
    "pages 415-555",
    "ISBN 978-3-16-148410-0",
    "a@b",
    "user@host",
    "password reset link sent",
    "pwd: /srv/app",
    "export PASSWORD=$SECRET",
    "--password-stdin",
    "passwords: 3 failed",
    "token=${{ secrets.GITHUB_TOKEN }}",
    '"token_type": "bearer", "expires_in": 3600',
    "mailto: the owner",
    "x-api-key: {{api_key}}",
)

NEGATIVES: Final[dict[str, Callable[[Maker], str]]] = {
    "card": bad_card,
    "resident": bad_resident,
    "iban": bad_iban,
    "uuid": uuid,
    "hash": a_hash,
    "order": order,
    "date": a_date,
    "version": version,
    "code": lambda make: make.one(*CODE),
}


def negatives(seed: int, each: int) -> list[Sample]:
    """``each`` samples of every family; nothing in them must go."""
    make = Maker(seed)
    return [
        Sample(make.random.choice(FRAMES)(draw(make)), "", "", family)
        for family, draw in NEGATIVES.items()
        for _ in range(each)
    ]
