"""Store cases about ids: nothing in them is a separator or pattern, and nobody sees another's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from satchel.errors import StoreError
from satchel.stores.base import Entry
from satchel.testing._cases import case, entries, equal, payloads, refused, true

if TYPE_CHECKING:
    from satchel.testing._cases import Stage

NAMES: Final = (
    "acme",
    "acme-corp",
    "acme ",
    " acme",
    "Acme",
    "ACME",
    "acme:1",
    "acme:1:2",
    "acme:",
    ":acme",
    "acme/../acme",
    "acme/1",
    "acme|1",
    "acme\x1f1",
    "acme\x00",
    "acme\x001",
    "acme\n",
    "acme\r\n",
    "acm*",
    "acm?",
    "acm_",
    "acm%",
    "ac[m]e",
    "{acme}",
    "acme}",
    "^acme$",
    "acme' OR '1'='1",
    "acme'; DROP TABLE sessions; --",
    'acme"',
    "acme\\",
    "acme\\x00",
    "$acme",
    "\u00e5cme",
    "a\u030acme",
    "\u212bcme",
    "\u0430cme",
    "acme\u200b",
    "\u202eacme",
    "\uff41cme",
    "acme\U000e0041",
    "\U0001f9f3",
    "None",
    "null",
    "0",
    "00",
    "1e3",
    "1000",
    "acme" * 2_500,
    "acme" * 2_500 + "!",
    "\u00e9" * 5_000,
)
"""Names that a store may take for one another, or for something else than a name."""


@case()
async def sessions_never_meet(stage: Stage) -> None:
    store = stage.store()
    ids = [stage.id(name) for name in NAMES]
    for number, one in enumerate(ids):
        await store.open(one, user_id=stage.id("ada"))
        await store.append(one, entries(f"of {number}", keys=["key"]))
        await store.put_value(one, "v", b"%d" % number)
        await store.put_pages(one, {"p": b"%d" % number, f"p{number}": b"own"})
    for number, one in enumerate(ids):
        equal((await store.info(one)).session_id, one, "the id")
        equal(await payloads(store, one), [f"of {number}"], f"the log of {one[:60]!r}")
        found = await store.get_value(one, "v")
        equal(found and found.payload, b"%d" % number, f"the value of {one[:60]!r}")
        equal(await store.get_page(one, "p"), b"%d" % number, f"a page of {one[:60]!r}")
        other = (number + 1) % len(ids)
        equal(await store.get_page(one, f"p{other}"), None, "another session's pointer")
    for number, one in enumerate(ids[::2]):
        true(await store.delete(one), f"{one[:60]!r} was there to be deleted")
        left = await store.list_sessions(user_id=stage.id("ada"), limit=len(ids))
        equal(len(left), len(ids) - number - 1, f"what is left after {one[:60]!r}")
    for number, one in enumerate(ids[1::2]):
        equal(await payloads(store, one), [f"of {2 * number + 1}"], f"the log of {one[:60]!r}")
        equal(await store.get_page(one, "p"), b"%d" % (2 * number + 1), "its page")


@case()
async def users_never_meet(stage: Stage) -> None:
    store = stage.store()
    users = [stage.id(name) for name in NAMES]
    for number, user in enumerate(users):
        await store.open(stage.id(f"{number:03}"), user_id=user)
    for number, user in enumerate(users):
        found = await store.list_sessions(user_id=user)
        equal(
            [(info.session_id, info.user_id) for info in found],
            [(stage.id(f"{number:03}"), user)],
            f"the sessions of {user[:60]!r}",
        )
        other = users[(number + 1) % len(users)]
        await refused(store.open(stage.id(f"{number:03}"), user_id=other), "wrong_user")
        await refused(store.open(stage.id(f"{number:03}")), "wrong_user")


@case()
async def a_session_of_nobody_is_nobody_else_s(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    for user in ("None", "null", "0", stage.id()):
        await refused(store.open(stage.id(), user_id=user), "wrong_user")
    equal((await store.open(stage.id())).user_id, None, "the user")


@case()
async def keys_names_and_pointers_are_any_text(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    texts = [f"{number}" for number in range(len(NAMES))]
    await store.append(stage.id(), entries(*texts, keys=NAMES))
    await store.append(stage.id(), entries(*texts, keys=NAMES))
    equal(await payloads(store, stage.id()), texts, "the log")
    found = [entry.key for entry in await store.read(stage.id())]
    equal(found, list(NAMES), "the keys")
    await store.put_pages(
        stage.id(), {name: text.encode() for name, text in zip(NAMES, texts, strict=True)}
    )
    for name, text in zip(NAMES, texts, strict=True):
        await store.put_value(stage.id(), name, text.encode(), expected_version=0)
    for name, text in zip(NAMES, texts, strict=True):
        value = await store.get_value(stage.id(), name)
        equal(value and value.payload, text.encode(), f"value {name[:60]!r}")
        equal(await store.get_page(stage.id(), name), text.encode(), f"page {name[:60]!r}")
    equal(await store.value_names(stage.id()), sorted(NAMES), "the names")
    equal(await store.page_pointers(stage.id()), sorted(NAMES), "the pointers")


@case()
async def what_is_no_id_or_payload_is_refused(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    for wrong in ("", "\ud800", "x" * 65_537, 7, b"bytes", ["list"]):
        value = cast("Any", wrong)
        await refused(store.open(value), "invalid_value")
        await refused(store.open(stage.id("new"), user_id=value), "invalid_value")
        await refused(store.branch(stage.id(), value, length=0), "invalid_value")
        await refused(store.put_value(stage.id(), value, b""), "invalid_value")
        if not isinstance(wrong, list):
            await refused(store.put_pages(stage.id(), {value: b""}), "invalid_value")
        await refused(store.append(stage.id(), entries("a", keys=[value])), "invalid_value")
    text = cast("Any", "text")
    await refused(
        store.append(stage.id(), [*entries("a"), Entry("message", text)]), "invalid_value"
    )
    await refused(store.put_value(stage.id(), "v", text), "invalid_value")
    await refused(store.put_pages(stage.id(), {"q": b"", "p": text}), "invalid_value")
    equal(await store.read(stage.id()), [], "the log")
    equal(await store.page_pointers(stage.id()), [], "the pointers")


@case()
async def one_of_two_users_gets_a_new_session(stage: Stage) -> None:
    store = stage.store()
    stores = [store, stage.store() if "shared" in stage.capabilities else store]

    async def open_it(number: int, user: str) -> bool:
        try:
            await stores[number].open(stage.id(), user_id=stage.id(user))
        except StoreError as error:
            if error.code != "wrong_user":
                raise
            return False
        return True

    done = await asyncio.gather(*(open_it(n % 2, "ab"[n % 2]) for n in range(8)))
    true(done in ([True, False] * 4, [False, True] * 4), "one user has it, the other has not")


@case()
async def errors_carry_nothing_of_the_session(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id(), user_id=stage.id("ada"))
    await store.append(stage.id(), entries("a secret text", keys=["a secret key"]))
    errors = [
        await refused(store.open(stage.id(), user_id=stage.id("eve")), "wrong_user"),
        await refused(store.info(stage.id("gone")), "session_not_found"),
        await refused(
            store.append(stage.id(), entries("a secret text"), expected_version=7),
            "version_conflict",
        ),
        await refused(
            store.put_value(stage.id(), "v", b"a secret text", expected_version=7),
            "version_conflict",
        ),
        await refused(
            store.branch(stage.id(), stage.id(), length=1, user_id=stage.id("ada")),
            "session_exists",
        ),
    ]
    for error in errors:
        said = f"{error} {error.__cause__ or ''}"
        true("secret" not in said and stage.id() not in said, f"{error.code} says too much")
