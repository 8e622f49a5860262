"""Customer service of an invented shop: refunds under a limit, an exchange, an address change."""

# ruff: noqa: E501 - the words of the conversation, kept in one piece

from __future__ import annotations

import json
from typing import Any

from runs.run import Call, Run, number, schema, text

SYSTEM = """You are the service agent of Fennel & Oak, a mail-order shop for garden tools.

Rules of the house:
- Verify the customer by e-mail address and postcode before you say anything about an order.
- Never refund above 200 EUR without asking a supervisor first (tool `ask_supervisor`).
- An order can be changed only while its status is `open` or `packing`.
- Items marked `clearance` are not exchanged, only repaired.
- Vouchers are not paid out in cash.
- One action at a time. Before any action that costs money, repeat it and wait for a clear yes.
- Amounts are in EUR with two decimals. Answer in the customer's language, briefly and kindly."""

ADDRESS = schema(
    ("street", "postcode", "city", "country"),
    street=text("street and house number"),
    postcode=text("postal code"),
    city=text("town"),
    country=text("two-letter country code", minLength=2, maxLength=2),
    note={"type": ["string", "null"], "description": "for the driver"},
)
TOOLS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "find_customer",
        "Find a customer by e-mail address and postcode. Both must match.",
        schema(("email", "postcode"), email=text("e-mail address"), postcode=text("postal code")),
    ),
    (
        "get_order",
        "An order with its lines, payments and parcel events.",
        schema(("order_id",), order_id=text("like FO-71834")),
    ),
    (
        "refund",
        "Pay back to the original payment method. Final.",
        schema(
            ("order_id", "amount_eur", "reason"),
            order_id=text("the order"),
            amount_eur=number("amount, two decimals", "number", exclusiveMinimum=0),
            reason=text("why", enum=["damaged", "late", "lost", "wrong_item", "goodwill"]),
            lines={
                "type": "array",
                "description": "the order lines concerned",
                "items": schema(
                    ("sku", "quantity"),
                    sku=text("stock-keeping unit"),
                    quantity=number("pieces", minimum=1),
                ),
            },
        ),
    ),
    (
        "exchange",
        "Send a replacement and book the return of the original.",
        schema(
            ("order_id", "sku_out", "sku_in"),
            order_id=text("the order"),
            sku_out=text("what comes back"),
            sku_in=text("what is sent"),
        ),
    ),
    (
        "update_address",
        "Change the delivery address of an order that has not left the house.",
        schema(("order_id", "address"), order_id=text("the order"), address=ADDRESS),
    ),
    (
        "ask_supervisor",
        "Ask a supervisor for a decision; answers within a minute.",
        schema(("question",), question=text("what is to be decided, with the facts")),
    ),
]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _order(order_id: str, status: str, placed: str, lines: list[Any], events: list[Any]) -> str:
    rows = [
        {"sku": s, "title": t, "quantity": q, "unit_eur": p, "clearance": c}
        for s, t, q, p, c in lines
    ]
    total = sum(row["quantity"] * row["unit_eur"] for row in rows)
    return _json(
        {
            "order_id": order_id,
            "status": status,
            "placed_at": placed,
            "customer_id": "C-20917",
            "lines": rows,
            "goods_eur": round(total, 2),
            "shipping_eur": 6.9,
            "total_eur": round(total + 6.9, 2),
            "payments": [
                {"method": "card", "last4": "4471", "amount_eur": round(total + 6.9, 2)},
            ],
            "parcel_events": [{"at": a, "where": w, "what": x} for a, w, x in events],
        }
    )


def build() -> Run:
    """The run."""
    run = Run("service", "Damaged greenhouse kit, refund above the limit", SYSTEM, TOOLS)
    run.user(
        "Hi, my greenhouse kit arrived yesterday and two of the panes are cracked right across. "
        "I'd like my money back please. Marit Oosterhuis, marit.oosterhuis@posteo.example, 9721 KL"
    )
    run.call(
        "I am sorry to read that, Marit. Let me look you up.",
        Call(
            "find_customer",
            {"email": "marit.oosterhuis@posteo.example", "postcode": "9721 KL"},
            _json(
                {
                    "customer_id": "C-20917",
                    "name": "Marit Oosterhuis",
                    "since": "2021-04-18",
                    "language": "en",
                    "orders": ["FO-71834", "FO-71190", "FO-70233", "FO-66481"],
                    "vouchers": [{"code": "SPRING-8QX2", "value_eur": 15.0, "until": "2026-12-31"}],
                    "flags": [],
                }
            ),
        ),
    )
    kit = [
        ("GH-2436", "Greenhouse kit 'Larkspur', 2.4 x 3.6 m", 1, 389.0, False),
        ("GH-CLIP-40", "Pane clips, 40 pieces", 2, 11.5, False),
        ("SEC-FELCO-2", "Secateurs, left-handed", 1, 48.9, True),
    ]
    run.call(
        "",
        Call(
            "get_order",
            {"order_id": "FO-71834"},
            _order(
                "FO-71834",
                "delivered",
                "2026-10-29T18:41:07Z",
                kit,
                [
                    ("2026-10-30T06:12:00Z", "Apeldoorn", "picked and packed"),
                    ("2026-10-30T15:55:00Z", "Apeldoorn", "handed to carrier, 3 parcels"),
                    ("2026-11-02T04:20:00Z", "Zwolle", "sorted; parcel 2 of 3 marked 'wet'"),
                    ("2026-11-03T10:47:00Z", "Groningen", "delivered, signed M. Oosterhuis"),
                ],
            ),
        ),
    )
    run.say(
        "Thank you, I see order FO-71834, delivered on 3 November. The kit itself is 389.00 EUR. "
        "Two questions: are only the panes cracked, or is the frame bent too? And would you rather "
        "have replacement panes (free, about four days) or the money for the kit?"
    )
    run.user(
        "Frame is fine I think but honestly I don't want it any more, the box was soaked. Money "
        "back for the whole kit please. I keep the secateurs and the clips. Please don't call me, "
        "I work nights, only write."
    )
    run.say(
        "Understood: a refund of 389.00 EUR for the greenhouse kit only, by card ending 4471; the "
        "clips and the secateurs stay with you, and we contact you only in writing. Because this is "
        "above 200 EUR I have to ask a supervisor first. May I go ahead and ask?"
    )
    run.user("yes go ahead")
    run.call(
        "",
        Call(
            "ask_supervisor",
            {
                "question": "FO-71834: kit GH-2436 arrived with two cracked panes, parcel marked "
                "'wet' by the carrier in Zwolle. Customer wants 389.00 EUR back and no replacement. "
                "No earlier claims since 2021. Refund in full?"
            },
            _json(
                {
                    "decision": "approved",
                    "case": "SV-3308",
                    "by": "Ruben Aalders",
                    "limit_eur": 389.0,
                    "condition": "carrier must collect the kit before 2026-11-14; photos needed",
                }
            ),
        ),
    )
    run.say(
        "The supervisor has agreed under case SV-3308: 389.00 EUR, provided the carrier can collect "
        "the kit before 14 November and you send us two photos of the panes. Shall I book the "
        "refund on those terms?"
    )
    run.user("Yes. Photos are uploaded in the portal already (2 files). Wednesday or later is ok")
    run.call(
        "",
        Call(
            "refund",
            {
                "order_id": "FO-71834",
                "amount_eur": 389.0,
                "reason": "damaged",
                "lines": [{"sku": "GH-2436", "quantity": 1}],
            },
            _json(
                {
                    "error": "case_required",
                    "message": "refunds above 200.00 EUR need an approved case; none attached",
                    "retry_with": "reason text 'damaged' and case in the supervisor queue SV-3308",
                }
            ),
            is_error=True,
        ),
    )
    run.call(
        "The booking system wants the case attached; I will ask the supervisor to link it.",
        Call(
            "ask_supervisor",
            {"question": "Please attach SV-3308 to order FO-71834, the refund was rejected."},
            _json({"decision": "done", "case": "SV-3308", "attached_to": "FO-71834"}),
        ),
    )
    run.call(
        "",
        Call(
            "refund",
            {
                "order_id": "FO-71834",
                "amount_eur": 389.0,
                "reason": "damaged",
                "lines": [{"sku": "GH-2436", "quantity": 1}],
            },
            _json(
                {
                    "refund_id": "RF-5590217",
                    "order_id": "FO-71834",
                    "amount_eur": 389.0,
                    "to": "card 4471",
                    "value_date": "2026-11-07",
                    "collection": {"label": "NL-RT-882014", "from": "2026-11-11"},
                }
            ),
        ),
    )
    run.say(
        "Done: refund RF-5590217, 389.00 EUR to the card ending 4471, value date 7 November. The "
        "carrier collects the kit from Wednesday 11 November, label NL-RT-882014 (sent by e-mail). "
        "Nobody will call you."
    )
    run.user(
        "Thanks. While you are here: order FO-71190, can I have the blue hose instead of the green? "
        "And my new address from the 10th is Damsterdiep 211, 9713 EJ Groningen."
    )
    run.call(
        "",
        Call(
            "get_order",
            {"order_id": "FO-71190"},
            _order(
                "FO-71190",
                "packing",
                "2026-11-03T20:02:44Z",
                [
                    ("HOSE-25-GN", "Hose 25 m, green", 1, 54.5, False),
                    ("NOZ-BRASS", "Brass nozzle", 1, 17.25, False),
                ],
                [("2026-11-04T05:31:00Z", "Apeldoorn", "picking")],
            ),
        ),
    )
    run.say(
        "FO-71190 is still in packing, so both can be changed. Hose: green HOSE-25-GN against blue "
        "HOSE-25-BL, same price, nothing to pay. Address: Damsterdiep 211, 9713 EJ Groningen, NL. "
        "Is that right, and is it for this order only?"
    )
    run.user("right, and yes, this order. The other address stays for the collection!!")
    run.call(
        "",
        Call(
            "exchange",
            {"order_id": "FO-71190", "sku_out": "HOSE-25-GN", "sku_in": "HOSE-25-BL"},
            _json({"order_id": "FO-71190", "changed": True, "difference_eur": 0.0}),
        ),
    )
    run.call(
        "",
        Call(
            "update_address",
            {
                "order_id": "FO-71190",
                "address": {
                    "street": "Damsterdiep 211",
                    "postcode": "9713 EJ",
                    "city": "Groningen",
                    "country": "NL",
                    "note": None,
                },
            },
            _json({"order_id": "FO-71190", "status": "packing", "promised": "2026-11-10"}),
        ),
    )
    run.say(
        "Both are done: blue hose, to Damsterdiep 211, promised for 10 November. The collection of "
        "the kit stays at your present address."
    )
    run.user("One last thing, could you pay out the SPRING voucher? I won't need it.")
    run.say(
        "I am afraid vouchers are not paid out in cash; SPRING-8QX2 (15.00 EUR) stays valid until "
        "31 December 2026, and you may give it to somebody else. Anything else?"
    )
    run.user("No that's all. Thank you!")
    run.say("You are welcome, Marit. Summary by e-mail: RF-5590217, NL-RT-882014, FO-71190.")
    return run
