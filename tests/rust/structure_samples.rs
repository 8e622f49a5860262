//! A sample of every structure, in English and Korean, and what must be kept of it.

use satchel_core::prune::structure::{
    Structure, Stub, boost_matching, detect, outline, render, saves, units,
};

pub const JSON: &str = r#"{"status": "partial", "total": 6, "orders": [
  {"order_id": "A-1001", "city": "Busan", "price": 12.5, "lines": 3, "note": "leave at the door, ring twice"},
  {"order_id": "A-1002", "city": "Seoul", "price": 13.5, "lines": 2, "note": "leave at the door, ring twice"},
  {"order_id": "A-1003", "city": "Seoul", "price": 9000, "lines": 2, "note": "leave at the door, ring twice"},
  {"order_id": "A-1004", "city": "Daegu", "price": 14.5, "lines": 1, "note": "leave at the door, ring twice"},
  {"order_id": "A-1005", "problem": "card refused"},
  {"order_id": "A-1006", "city": "Jeju", "price": 15.5, "lines": 7, "note": "leave at the door, ring twice"}
], "next": null}"#;

pub const JSON_LINES: &str = "{\"type\":\"start\",\"run\":7}\n\
{\"type\":\"tick\",\"at\":1,\"load\":0.5}\n\
{\"type\":\"tick\",\"at\":2,\"load\":0.5}\n\
{\"type\":\"tick\",\"at\":3,\"load\":0.5}\n\
{\"type\":\"tick\",\"at\":4,\"load\":0.5}\n\
{\"type\":\"fail\",\"at\":5,\"error\":\"디스크가 가득 찼습니다\"}\n\
{\"type\":\"tick\",\"at\":6,\"load\":0.5}\n\
{\"type\":\"stop\",\"run\":7}\n";

pub const DIFF: &str = "diff --git a/src/cart.py b/src/cart.py
index 1111111..2222222 100644
--- a/src/cart.py
+++ b/src/cart.py
@@ -10,7 +10,7 @@ class Cart:
     def total(self):
         # 합계를 돌려준다
         amount = 0
-        for item in self.items:
+        for item in self.open_items:
             amount += item.price
         return amount
 
@@ -40,3 +40,4 @@ class Cart:
     def close(self):
         self.closed = True
+        self.notify()
         return self
diff --git a/package-lock.json b/package-lock.json
--- a/package-lock.json
+++ b/package-lock.json
@@ -1,3 +1,3 @@
 {
-  \"version\": 1
+  \"version\": 2
 }
";

pub const TRACE: &str = "Traceback (most recent call last):
  File \"/usr/lib/python3.12/runpy.py\", line 198, in _run_module_as_main
    return _run_code(code, main_globals, None)
  File \"/srv/shop/app.py\", line 40, in main
    close_day(books)
  File \"/srv/shop/books.py\", line 12, in close_day
    post(entry)
  File \"/srv/venv/lib/python3.12/site-packages/ledger/api.py\", line 88, in post
    raise Unbalanced(entry)
ledger.api.Unbalanced: 차변과 대변이 다릅니다: 1200 != 1100
";

pub const LOG: &str = "2026-03-01 09:00:00 INFO shop.start 서버를 시작합니다 version=4.2.1
2026-03-01 09:00:01 INFO shop.http GET /api/items/17 200 12ms
2026-03-01 09:00:02 INFO shop.http GET /api/items/18 200 11ms
2026-03-01 09:00:03 INFO shop.http GET /api/items/19 200 14ms
2026-03-01 09:00:04 INFO shop.http GET /api/items/20 200 10ms
2026-03-01 09:00:05 INFO shop.http GET /api/items/21 200 19ms
2026-03-01 09:00:06 ERROR shop.pay 결제 실패: card 4471 refused by bank
2026-03-01 09:00:07 INFO shop.http GET /api/items/22 200 12ms
2026-03-01 09:00:08 INFO shop.http GET /api/items/23 200 12ms
2026-03-01 09:00:09 INFO shop.tally 0 errors so far
2026-03-01 09:00:10 INFO shop.stop closing books
2026-03-01 09:00:10 INFO shop.stop closing files
2026-03-01 09:00:10 INFO shop.stop closing doors
2026-03-01 09:00:10 INFO shop.stop exited with code 3
";

pub const LISTING: &str = "Found 9 files
/srv/shop/src/cart.py
/srv/shop/src/pay.py
/srv/shop/src/items.py
/srv/shop/src/users.py
/srv/shop/docs/설명서.md
/srv/shop/docs/install.md
/srv/shop/tests/test_cart.py
/srv/shop/tests/test_pay.py
/srv/shop/tests/test_items.py
";

pub const SEARCH: &str = "src/cart.py:12:def total(cart):
src/cart.py:40:    return total(cart)
src/cart.py:52:    # total 을 다시 계산한다
src/pay.py:7:from cart import total
src/pay.py-8-from items import Item
src/pay.py:31:    amount = total(cart)
tests/test_cart.py:9:    assert total(cart) == 3
";

pub const TABLE: &str = "| 상품 | price | stock |
|---|---|---|
| 사과 | 1200 | 40 |
| 배 | 3100 | 12 |
| 귤 | 300 | 900 |
| 감 | 900 | 33 |
| 밤 | 800 | 21 |
| 무 | 850 | 23 |
| 파 | 860 | 24 |
| 콩 | 870 | 25 |
| 쌀 | 880 | 26 |
| 합계 | 6300 | 1006 |
";

pub const CSV: &str = "id,name,price\n1,apple,120\n2,pear,310\n3,fig,95\n4,plum,9000\n5,lime,80\n6,date,99\n7,kiwi,101\n8,melon,102\n9,quince,103\n10,medlar,104\n";

pub const CODE: &str = "import os
from decimal import Decimal

LIMIT = 40


class Cart:
    \"\"\"장바구니.\"\"\"

    def __init__(self, owner):
        # 주인이 있어야 한다
        self.owner = owner
        self.items = []

    def add(self, item):
        self.items.append(item)
        return self


def total(cart):
    amount = Decimal(0)
    for item in cart.items:
        amount += item.price
    return amount
";

pub const NUMBERED: &str = "     1\tfn main() {
     2\t    let books = open();
     3\t    close(&books);
     4\t}
     5\t
     6\tpub(crate) fn close(books: &Books) -> Result<()> {
     7\t    books.post()?;
     8\t    Ok(())
     9\t}
";

pub const TEXT: &str = "# 배송 정책

주문은 이틀 안에 보냅니다. 주말에는 보내지 않습니다.
The carrier is chosen by the weight of the parcel and by the place it goes to.

## Returns

A parcel may come back within thirty days, unopened, with its receipt inside.
Refunds go to the card that paid, never to another one.

## Contact

Write to the shop and name the number of your order, please.
";

pub const SAMPLES: [(Structure, &str); 12] = [
    (Structure::Json, JSON),
    (Structure::JsonLines, JSON_LINES),
    (Structure::Diff, DIFF),
    (Structure::Trace, TRACE),
    (Structure::Log, LOG),
    (Structure::Listing, LISTING),
    (Structure::Search, SEARCH),
    (Structure::Table, TABLE),
    (Structure::Table, CSV),
    (Structure::Code, CODE),
    (Structure::Code, NUMBERED),
    (Structure::Text, TEXT),
];

/// The outline of a text in about `max_bytes`.
fn trimmed(text: &str, max_bytes: usize) -> String {
    let structure = detect(text);
    let units = units(text, structure);
    let kept = outline(text, structure, &units, max_bytes);
    render(text, structure, &units, &kept, "p_7")
}

#[track_caller]
fn assert_holds(text: &str, wanted: &[&str], unwanted: &[&str]) {
    for piece in wanted {
        assert!(text.contains(piece), "{piece:?} is not in\n{text}");
    }
    for piece in unwanted {
        assert!(!text.contains(piece), "{piece:?} is in\n{text}");
    }
}

#[test]
fn structures_are_told_apart() {
    for (structure, text) in SAMPLES {
        assert_eq!(detect(text), structure, "{text}");
    }
    assert_eq!(detect(""), Structure::Text);
    assert_eq!(detect("ok"), Structure::Text);
    assert_eq!(detect("{\"a\": 1"), Structure::Text);
    assert_eq!(detect("[1, 2,]"), Structure::Text);
    assert_eq!(detect("[1] see below"), Structure::Text);
}

#[test]
fn json_keeps_extremes_outliers_and_telling_members() {
    let text = trimmed(JSON, 560);
    assert_holds(
        &text,
        &[
            r#""status": "partial""#,
            r#""total": 6"#,
            r#""order_id": "A-1001""#,
            r#"{"order_id": "A-1005", "problem": "card refused"}"#,
            r#""price": 9000"#,
            "of 6 rows left out",
            "page p_7",
        ],
        &["A-1002"],
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["total"], 6);
    assert!(saves(JSON, &text));
}

#[test]
fn large_strings_in_json_are_lines() {
    let log = LOG.repeat(2);
    let text = serde_json::json!({"exit_code": 3, "output": log}).to_string();
    assert_eq!(detect(&text), Structure::Json);
    let short = trimmed(&text, 420);
    let value: serde_json::Value = serde_json::from_str(&short).unwrap();
    assert_eq!(value["exit_code"], 3);
    let output = value["output"].as_str().unwrap();
    assert_holds(
        output,
        &["결제 실패: card 4471 refused by bank\n", "lines left out"],
        &["items/19"],
    );
}

#[test]
fn json_lines_keep_one_of_every_shape() {
    let text = trimmed(JSON_LINES, 240);
    assert_holds(
        &text,
        &[
            "\"start\"",
            "\"at\":1,",
            "디스크가 가득",
            "\"stop\"",
            "{\"…\":\"",
        ],
        &["\"at\":3,"],
    );
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn diffs_keep_files_and_hunks() {
    let text = trimmed(DIFF, 600);
    assert_holds(
        &text,
        &[
            "+++ b/src/cart.py\n",
            "+        for item in self.open_items:\n",
            "+        self.notify()\n",
            "+++ b/package-lock.json\n",
        ],
        &["\"version\": 2"],
    );
    let hunk =
        "--- a/x\n+++ b/x\n@@ -1,30 +1,30 @@\n".to_owned() + &"-old line\n+new line\n".repeat(30);
    let kept = [2, 3];
    assert_eq!(
        render(
            &hunk,
            Structure::Diff,
            &units(&hunk, Structure::Diff),
            &kept,
            ""
        ),
        "--- a/x\n+++ b/x\n@@ -1,30 +1,30 @@\n-old line\n[… 59 lines left out (5-63): +30 -29]\n"
    );
    let units = units(DIFF, Structure::Diff);
    let index = |wanted: &str| {
        units
            .iter()
            .position(|unit| unit.text(DIFF).starts_with(wanted))
            .unwrap()
    };
    let parents = |mut at: usize| {
        let mut chain = Vec::new();
        while let Some(parent) = units[at].parent {
            at = parent as usize;
            chain.push(units[at].text(DIFF).trim_end());
        }
        chain
    };
    assert_eq!(
        parents(index("+        self.notify()")),
        [
            "@@ -40,3 +40,4 @@ class Cart:",
            "+++ b/src/cart.py",
            "--- a/src/cart.py",
            "diff --git a/src/cart.py b/src/cart.py"
        ]
    );
}

#[test]
fn traces_keep_what_was_raised_and_own_frames() {
    let text = trimmed(TRACE, 260);
    assert_holds(
        &text,
        &[
            "Traceback (most recent call last):\n",
            "books.py\", line 12",
            "ledger.api.Unbalanced: 차변과",
        ],
        &["runpy.py"],
    );
    let java = "Exception in thread \"main\" java.lang.IllegalStateException: 재고가 없습니다
\tat java.base/java.util.Objects.check(Objects.java:30)
\tat shop.Stock.take(Stock.java:41)
\tat shop.Cart.close(Cart.java:77)
\tat org.junit.runner.Run.go(Run.java:9)
\tat org.junit.runner.Run.main(Run.java:3)
Caused by: java.io.IOException: disk full
\tat shop.Disk.write(Disk.java:5)
\t... 4 more
";
    assert_eq!(detect(java), Structure::Trace);
    assert_holds(
        &trimmed(java, 330),
        &[
            "재고가 없습니다",
            "Stock.java:41",
            "Caused by: java.io.IOException",
        ],
        &["Run.main"],
    );
}

#[test]
fn logs_keep_failures_outcomes_and_one_of_each_kind() {
    let text = trimmed(LOG, 420);
    assert_holds(
        &text,
        &[
            "서버를 시작합니다",
            "items/17",
            "결제 실패",
            "exited with code 3",
        ],
        &["items/20", "0 errors"],
    );
    // Words inside names, and nothing wrong at all, are no failures.
    let weights = |text: &str| units(text, Structure::Log)[3].weight;
    let filled = |line: &str| format!("a\nb\nc\n{line}\nd\ne\nf\ng\nh\n");
    assert!(weights(&filled("error: no space")) > 0.8);
    assert!(weights(&filled("KeyError raised")) > 0.8);
    for line in [
        "0 errors",
        "no error here",
        "errors: 0",
        "terror reigns",
        "see error_handler",
        "\"error\": null",
        "오류 없음",
    ] {
        assert!(weights(&filled(line)) < 0.5, "{line}");
    }
}

#[test]
fn a_repeated_failure_is_told_once() {
    let text = "x failed at 12:00:01\n".repeat(50) + "done\n";
    let units = units(&text, Structure::Log);
    assert!(units[0].weight > 0.8);
    assert!(units[30].weight < 0.2);
    let kept = outline(&text, Structure::Log, &units, 120);
    let short = render(&text, Structure::Log, &units, &kept, "");
    assert_holds(&short, &["like \"x failed at 12:00:0", "done\n"], &[]);
}

#[test]
fn listings_name_every_folder() {
    let text = trimmed(LISTING, 255);
    assert_holds(
        &text,
        &[
            "Found 9 files",
            "src/cart.py",
            "docs/설명서.md",
            "tests/test_cart.py",
            "entries left out",
        ],
        &["items.py\n/srv/shop/src/users"],
    );
}

#[test]
fn searches_keep_something_of_every_file() {
    let text = trimmed(SEARCH, 215);
    assert_holds(
        &text,
        &["src/cart.py:12:", "src/pay.py:7:", "tests/test_cart.py:9:"],
        &["src/pay.py-8-"],
    );
    let headed = "src/cart.py\n12:def total(cart):\n40:    return total(cart)\n\nsrc/pay.py\n7:from cart import total\n";
    let units = units(headed, Structure::Search);
    assert_eq!(units[2].parent, Some(0));
    assert_eq!(units[5].parent, Some(4));
}

#[test]
fn tables_keep_header_totals_and_extremes() {
    let text = trimmed(TABLE, 200);
    assert_holds(
        &text,
        &[
            "| 상품 | price | stock |\n|---|---|---|\n",
            "| 귤 | 300 | 900 |",
            "| 합계 |",
        ],
        &["| 밤 |"],
    );
    let units = units(CSV, Structure::Table);
    assert!(units[4].text(CSV).contains("plum") && units[4].weight >= 0.4);
    assert!(units[2].text(CSV).contains("pear") && units[2].weight < 0.3);
    assert_eq!(units[4].parent, Some(0));
}

#[test]
fn code_keeps_signatures_and_what_encloses_a_line() {
    let text = trimmed(CODE, 370);
    assert_holds(
        &text,
        &[
            "class Cart:",
            "    def __init__(self, owner):",
            "    def add(self, item):",
            "def total(cart):",
        ],
        &["amount += item.price"],
    );
    let units = units(CODE, Structure::Code);
    let at = units
        .iter()
        .position(|unit| unit.text(CODE).contains("items.append"))
        .unwrap();
    let text = render(CODE, Structure::Code, &units, &[at as u32], "");
    assert_holds(
        &text,
        &[
            "class Cart:\n",
            "    def add(self, item):\n",
            "items.append",
        ],
        &["def total"],
    );
}

#[test]
fn signatures_of_many_languages() {
    for line in [
        "def total(cart):",
        "async def fetch(url: str) -> bytes:",
        "class 장바구니:",
        "pub(crate) fn close(books: &Books) -> Result<()> {",
        "impl Display for Cart {",
        "func (c *Cart) Close() error {",
        "public static void main(String[] args) {",
        "export default async function load() {",
        "export const load = async (id: string) => {",
        "interface Cart {",
        "type Cart struct {",
        "data class Item(val id: Int)",
        "static int close_day(struct books *books)",
        "  async close(day: Day): Promise<void> {",
        "module Shop",
    ] {
        let text = format!("x\ny\nz\n{line}\n    a;\n    b;\n    c;\n    d;\n}}\n");
        let weight = units(&text, Structure::Code)[3].weight;
        assert!(weight >= 0.5, "{line}: {weight}");
    }
    for line in [
        "type: string",
        "    if (closed) {",
        "    return close(day);",
        "close(day);",
        "    for item in items {",
        "let total = sum(items);",
        "classic = 1",
    ] {
        let text = format!("x\ny\nz\n{line}\n    a;\n    b;\n    c;\n    d;\n}}\n");
        let weight = units(&text, Structure::Code)[3].weight;
        assert!(weight < 0.5, "{line}: {weight}");
    }
}

#[test]
fn text_keeps_headings_start_and_end() {
    assert_holds(
        &trimmed(TEXT, 370),
        &[
            "# 배송 정책",
            "## Returns",
            "## Contact",
            "Write to the shop",
        ],
        &["unopened"],
    );
}

#[test]
fn literals_come_first() {
    for (structure, text, literal) in [
        (Structure::Json, JSON, "A-1004"),
        (Structure::Log, LOG, "items/20"),
        (Structure::Code, CODE, "amount += item.price"),
        (Structure::Diff, DIFF, "\"version\": 2"),
        (Structure::Table, TABLE, "| 밤 |"),
        (Structure::Text, TEXT, "unopened"),
    ] {
        let mut units = units(text, structure);
        boost_matching(text, structure, &mut units, &["", literal]);
        let kept = outline(text, structure, &units, text.len() * 3 / 4);
        let short = render(text, structure, &units, &kept, "");
        assert_holds(&short, &[literal], &[]);
        assert!(saves(text, &short), "{short}");
    }
    // As other programs write the same string in JSON.
    let escaped = r#"{"rows": [{"name": "\uadc0"}, {"name": "\uac10"}, {"name": "a\"b"}]}"#;
    let mut found = units(escaped, Structure::Json);
    let before = found.clone();
    boost_matching(escaped, Structure::Json, &mut found, &["감"]);
    assert_ne!(found, before);
}

#[test]
fn a_stub_is_one_line_with_what_it_was() {
    let line = |text: &str, what: &str| {
        let amount = format!("{} lines left out", text.lines().count());
        let stub = Stub {
            what,
            names: None,
            amount: &amount,
            pointer: "p_7",
            max_chars: 260,
        };
        stub.line(text)
    };
    let log = line(LOG, "bash: make\nrun");
    assert_holds(
        &log,
        &[
            "[… bash: make run: 2026-03-01 09:00:06 ERROR shop.pay 결제 실패",
            "; has ",
        ],
        &["\n"],
    );
    assert!(
        log.ends_with("; 14 lines left out; page_in(\"p_7\")]"),
        "{log}"
    );
    for (tool, text, wanted) in [
        ("get_orders", JSON, "\"status\": \"partial\", \"total\": 6"),
        (
            "git diff",
            DIFF,
            "2 files +3 -2: src/cart.py, package-lock.json",
        ),
        ("python", TRACE, "ledger.api.Unbalanced: 차변과"),
        (
            "grep total",
            SEARCH,
            "6 matches in 3 files: src/cart.py, src/pay.py, tests/test_cart.py",
        ),
        ("read cart.py", CODE, "class Cart:"),
        ("", TEXT, "[… # 배송 정책"),
    ] {
        let stub = line(text, tool);
        assert_holds(&stub, &[wanted, tool, "; page_in(\"p_7\")]"], &["\n"]);
        assert!(stub.chars().count() < 400);
    }
    assert_eq!(line("", "x"), "[… x; 0 lines left out; page_in(\"p_7\")]");
    // Where there is no room for more it says what every marker says.
    let least = Stub {
        what: "read src/cart.py",
        names: Some(&["Cart".to_owned()]),
        amount: "9 lines left out",
        pointer: "p_7",
        max_chars: 40,
    };
    assert_eq!(least.line(CODE), "[… 9 lines left out; page_in(\"p_7\")]");
}

#[test]
fn a_pointer_cannot_break_out() {
    let pointer = "p\"\n}]";
    let kept = [0];
    let units = units(JSON, Structure::Json);
    let text = render(JSON, Structure::Json, &units, &kept, pointer);
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let stub = Stub {
        what: "a\u{2028}b\r\nc",
        names: None,
        amount: "14 lines left out",
        pointer,
        max_chars: 200,
    };
    assert_eq!(stub.line(LOG).lines().count(), 1);
}
