"""A build engineer and a broken release build: long logs. Also the sample in JSON lines."""

# ruff: noqa: E501 - the words of the conversation, kept in one piece

from __future__ import annotations

from random import Random
from typing import Any

from runs.outputs import diff
from runs.run import Call, Run, number, schema, text

SYSTEM = (
    "You keep the release build of Marsh Atlas (an offline map application) green. Read-only "
    "commands are free; ask before you change a version in gradle/libs.toml. Never disable a test. "
    "The signing key stays on the build host: never print environment variables."
)
TOOLS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "bash",
        "Run a command on the build host.",
        schema(("command",), command=text("command line"), timeout_s=number("limit", default=600)),
    ),
    (
        "apply_patch",
        "Apply a unified diff to the working copy.",
        schema(
            ("patch",), patch=text("unified diff"), dry_run={"type": "boolean", "default": False}
        ),
    ),
]
MODULES = (
    "tiles", "routing", "search", "contours", "gpx", "overlay", "download", "compass", "share",
    "settings", "widgets", "voice", "transit", "elevation", "bookmarks",
)  # fmt: skip
TASKS = (
    "preBuild", "generateResources", "processManifest", "compileKotlin", "compileJava", "mergeAssets",
    "lintAnalyze", "bundleClasses", "testDebugUnitTest", "jar",
)  # fmt: skip
LIBRARIES = (
    "org.marshatlas:vector-codec", "dev.harrow:coroutines-flow", "io.lantern:http-client",
    "io.lantern:http-cache", "net.quarry:protobuf-lite", "net.quarry:geo-index", "dev.harrow:serialization",
    "org.tern:sqlite-bundled", "org.tern:rtree", "com.osier:annotations",
)  # fmt: skip
# Libraries of which several versions are asked for, and the one that wins.
CHOSEN = {
    "net.quarry:protobuf-lite": "4.12.0",
    "net.quarry:geo-index": "3.11.2",
    "io.lantern:http-client": "4.0.1",
}
TESTS = (
    "decodesEmptyTile", "keepsRingOrder", "rejectsSelfIntersection", "mergesAdjacentSpans", "survivesRotation",
    "parsesElevationBand", "roundTripsWaypoint", "cachesByZoom", "evictsOldest", "handlesAntimeridian",
    "readsLegacyHeader", "skipsUnknownField", "resumesDownload", "verifiesChecksum", "snapsToRoad",
)  # fmt: skip


def build_log(rng: Random, *, failed: str, reason: str) -> str:
    """A verbose build over all modules; the task ``failed`` ends it unless it is empty."""
    out = [
        "Starting a Gradle Daemon (subsequent builds will be faster)",
        "> Configure project :app",
    ]
    for module in MODULES:
        out.append(f"> Configure project :{module}")
        if rng.random() < 0.3:
            out.append(f"w: :{module}: 'kotlinOptions' is deprecated, line {rng.randrange(10, 90)}")
    done = 0
    for module in MODULES:
        for task in TASKS:
            name = f":{module}:{task}"
            state = rng.choice(("", "", " UP-TO-DATE", " FROM-CACHE", " NO-SOURCE"))
            if name == failed:
                return "\n".join(
                    [*out, f"> Task {name} FAILED", "", reason, f"{done} actionable tasks"]
                )
            out.append(f"> Task {name}{state}")
            done += 1
            if task == "compileKotlin" and not state:
                for _ in range(rng.randrange(5)):
                    file = f"{rng.choice(TESTS)[:1].upper()}{rng.choice(TESTS)[1:]}.kt"
                    out.append(
                        f"w: file:///src/{module}/main/{file}:{rng.randrange(8, 400)}:{rng.randrange(1, 60)} "
                        + rng.choice(
                            (
                                "unused variable 'zoom'",
                                "parameter 'origin' is never used",
                                "unchecked cast: Any? to List<Span>",
                                "condition is always 'true'",
                                "name shadowed: tile",
                            )
                        )
                    )
            if task == "testDebugUnitTest" and not state:
                for test in rng.sample(TESTS, 6):
                    took = rng.expovariate(8)
                    out.append(f"    {module.title()}Test > {test} PASSED ({took:.3f}s)")
    out += [
        "",
        f"BUILD SUCCESSFUL in 6m {rng.randrange(60)}s",
        f"{done} actionable tasks: {done} executed",
    ]
    return "\n".join(out)


def dependencies(rng: Random) -> str:
    """The tree of one configuration, conflicts resolved upwards."""
    out = ["releaseRuntimeClasspath - Runtime classpath of 'release'."]
    for at, module in enumerate(MODULES):
        out.append(f"+--- project :{module}")
        for library in rng.sample(LIBRARIES, 5):
            version = f"{rng.randrange(1, 4)}.{rng.randrange(12)}.{rng.randrange(9)}"
            newer = f" -> {CHOSEN[library]}" if library in CHOSEN else ""
            out.append(f"|    +--- {library}:{version}{newer}")
            out += [
                f"|    |    \\--- {inner}:{rng.randrange(1, 4)}.{at}.{rng.randrange(9)} (*)"
                for inner in rng.sample(LIBRARIES, rng.randrange(3))
            ]
    return "\n".join(out)


COMPILE_ERROR = """e: file:///src/contours/main/ContourReader.kt:118:34 unresolved reference: 'readPackedSpan'
e: file:///src/contours/main/ContourReader.kt:131:21 argument type mismatch: actual type is 'LongArray', but 'SpanView' was expected

FAILURE: Build failed with an exception.

* What went wrong:
Execution failed for task ':contours:compileKotlin'.
> Compilation error. See log for more details

* Try:
> Run with --stacktrace option to get the stack trace."""

TEST_ERROR = """    ElevationTest > parsesElevationBand FAILED (0.041s)
        java.lang.IllegalStateException: band 7 begins at 412 m but band 6 ends at 409 m
            at org.marshatlas.elevation.BandReader.check(BandReader.kt:77)
            at org.marshatlas.elevation.BandReader.next(BandReader.kt:52)
            at org.marshatlas.elevation.BandReader$bands$1.invokeSuspend(BandReader.kt:31)
            at org.marshatlas.elevation.ElevationTest.parsesElevationBand(ElevationTest.kt:64)
        Caused by: java.io.EOFException: expected 12 bytes at offset 2044, found 8
            at net.quarry.protobuf.lite.Source.require(Source.java:219)
            at org.marshatlas.contours.ContourReader.header(ContourReader.kt:118)
            ... 9 more

FAILURE: Build failed with an exception.

* What went wrong:
Execution failed for task ':elevation:testDebugUnitTest'.
> There were failing tests. See the report at: file:///build/reports/tests/elevation/index.html"""

READER = """class ContourReader(private val source: Source, private val level: Int) {
    private var offset = 0

    fun spans(): Sequence<SpanView> = sequence {
        while (!source.exhausted()) {
            val header = header()
            if (header.kind != KIND_SPAN) {
                source.skip(header.length)
                continue
            }
            yield(span(header))
        }
    }

    private fun header(): Header {
        val packed = source.readPackedSpan(HEADER_FIELDS)
        offset += HEADER_BYTES
        return Header(kind = packed.int(0), length = packed.int(1), level = packed.int(2))
    }

    private fun span(header: Header): SpanView {
        val ids = source.readLongs(header.length / Long.SIZE_BYTES)
        offset += header.length
        return SpanView.of(ids, level)
    }

    companion object {
        const val KIND_SPAN = 4
        const val HEADER_BYTES = 8
        val HEADER_FIELDS = intArrayOf(1, 2, 3)
    }
}
"""


def shell(command: str, result: str, *, is_error: bool = False) -> Call:
    """A command on the build host."""
    return Call("bash", {"command": command}, result, is_error=is_error)


def patch(before: str, after: str) -> Call:
    """A patch of the reader."""
    shown = diff("contours/main/ContourReader.kt", before, after)
    return Call(
        "apply_patch", {"patch": shown, "dry_run": False}, "patched contours/main/ContourReader.kt"
    )


def build() -> Run:
    """The run."""
    rng = Random(77)
    run = Run("gradle", "A release build that broke over night", SYSTEM, TOOLS)
    run.user(
        "The nightly release build of Marsh Atlas broke, yesterday's was fine. Get it green again. No test "
        "may be disabled or loosened, and geo-index must stay at 3.x: the store's size limit."
    )
    log = build_log(rng, failed=":contours:compileKotlin", reason=COMPILE_ERROR)
    run.call(
        "I run the build to see it myself.",
        shell("./gradlew assembleRelease --info", log, is_error=True),
    )
    run.call(
        "A missing function in a library: which version do we get?",
        shell(
            "./gradlew :app:dependencies --configuration releaseRuntimeClasspath", dependencies(rng)
        ),
        shell("cat contours/main/ContourReader.kt", READER),
    )
    run.call(
        "",
        shell(
            "git log --since=yesterday --stat --oneline",
            "b71f0ce bump protobuf-lite 3.9.2 -> 4.12.0\n gradle/libs.toml | 2 +-\n"
            "40aa9d1 voice: shorter prompts\n voice/main/Prompts.kt | 31 +++++++-------\n"
            "2f9e618 transit: cache by stop\n transit/main/StopCache.kt | 88 ++++++++++++\n",
        ),
    )
    run.say(
        "Cause: b71f0ce raised protobuf-lite to 4.12.0, which dropped `readPackedSpan`. Two ways: go back to "
        "3.9.2 (a version change, so I ask), or read the three header fields one by one. I prefer the second."
    )
    run.user("Second way. The bump is there because of a security fix, don't revert it.")
    fixed = READER.replace(
        "        val packed = source.readPackedSpan(HEADER_FIELDS)\n        offset += HEADER_BYTES\n"
        "        return Header(kind = packed.int(0), length = packed.int(1), level = packed.int(2))\n",
        "        val kind = source.readShort().toInt()\n        val length = source.readInt()\n"
        "        val level = source.readShort().toInt()\n        offset += HEADER_BYTES\n"
        "        return Header(kind, length, level)\n",
    )
    run.call("", patch(READER, fixed))
    log = build_log(rng, failed=":elevation:testDebugUnitTest", reason=TEST_ERROR)
    run.call("", shell("./gradlew assembleRelease --info", log, is_error=True))
    run.call(
        "It compiles, but a header is 12 bytes in the elevation files: the packed form had no fixed size. "
        "I read the format's note.",
        shell(
            "sed -n 1,40p docs/contour-format.md",
            "# Contour files\n\nAll numbers big-endian.\n\n| version | header |\n|---|---|\n"
            "| 1 | kind u16, length u32, level u16 (8 bytes) |\n"
            "| 2 | kind u16, length u32, level u16, band u32 (12 bytes) |\n\n"
            "The version is the low byte of `kind`'s high half: 0x02.. means version 2.\n",
        ),
    )
    final = fixed.replace(
        "        offset += HEADER_BYTES\n        return Header(kind, length, level)\n",
        "        val band = if (kind ushr 8 == 2) source.readInt() else NO_BAND\n"
        "        offset += if (band == NO_BAND) HEADER_BYTES else HEADER_BYTES + Int.SIZE_BYTES\n"
        "        return Header(kind and 0xFF, length, level, band)\n",
    ).replace(
        "const val HEADER_BYTES = 8\n",
        "const val HEADER_BYTES = 8\n        const val NO_BAND = -1\n",
    )
    run.call("", patch(fixed, final))
    run.call(
        "",
        shell("./gradlew assembleRelease --info", build_log(rng, failed="", reason="")),
        shell("cat contours/main/ContourReader.kt", final),
    )
    run.say(
        "Green: BUILD SUCCESSFUL. `ContourReader.header` reads versions 1 (8 bytes) and 2 (12 bytes) itself; "
        "protobuf-lite stays at 4.12.0, geo-index at 3.x, no test was touched."
    )
    run.user("Thanks. Write it down for the changelog in one sentence.")
    run.say(
        "Contour files are read without `readPackedSpan`, which protobuf-lite 4.12.0 no longer has."
    )
    return run
