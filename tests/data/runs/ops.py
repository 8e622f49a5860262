"""A long operations run: fourteen mail relays move to a new configuration schema, one by one.

More than 300 messages. Standing instructions come early and hold to the end; the plan and the
configuration files are read again and again after edits; several hosts fail in their own way first.
"""

# ruff: noqa: E501, ISC004 - the words of the conversation, kept in one piece

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from runs.outputs import diff
from runs.run import Call, Run, number, schema, text

SYSTEM = """You operate the mail relays of Tidewater Post (hosts mx-01 to mx-14).

Standing instructions:
- Never restart mx-07 without asking: it holds the only copy of the quarantine.
- One relay at a time. Wait until its queue is below 50 before the next one.
- All times in UTC. Change numbers look like TW-2291.
- Do not print the contents of messages or addresses of customers.
- Every edit of a configuration is followed by `validate` before `apply`.
- Keep `rollout.md` up to date; it is what the night shift reads."""

TOOLS: list[tuple[str, str, dict[str, Any]]] = [
    ("read", "Read a file on a host, or in the plan's folder.",
     schema(("path",), host=text("mx-01 to mx-14, or 'plan'"), path=text("absolute, or a name"))),
    ("write", "Replace a file; returns the difference.",
     schema(("path", "content"), host=text("host or 'plan'"), path=text("file"), content=text("new text"))),
    ("run", "Run one of the allowed commands on a host.",
     schema(("host", "command"), host=text("host"), command=text("command line"),
            timeout_s=number("limit", minimum=1, maximum=600, default=60))),
    ("logs", "The journal of a unit on a host.",
     schema(("host", "unit"), host=text("host"), unit=text("unit"), lines=number("how many", maximum=400),
            filter=schema((), level=text("at least", enum=["debug", "info", "warning", "error"]),
                          since=text("time, UTC")))),
    ("metrics", "Current numbers of some hosts.",
     schema(("hosts",), hosts={"type": "array", "items": text("host"), "description": "which"})),
]  # fmt: skip


@dataclass(frozen=True)
class Trouble:
    """What goes wrong on a host, how it is found and how it is put right."""

    error: str
    look: str
    seen: str
    insight: str
    key: str
    value: str


TROUBLES: dict[str, Trouble] = {
    "mx-02": Trouble(
        "validate: line 14: unknown key 'tls.min_version' (schema 4 renamed it to 'tls.floor')",
        "relayctl schema --explain tls.floor",
        "tls.floor (string, default '1.2')\n  replaces tls.min_version since schema 4\n  values: 1.2, 1.3",
        "Only a renamed key. I note it: `tls.min_version` is `tls.floor` in schema 4.",
        "floor",
        '"1.2"',
    ),
    "mx-04": Trouble(
        "apply: EADDRINUSE 0.0.0.0:2525: held by pid 811 (relay-legacy)",
        "ss -ltnp sport = :2525",
        'LISTEN 0 256 0.0.0.0:2525 users:(("relay-legacy",pid=811,fd=9))\nunit: relay-legacy.service, enabled',
        "The old daemon was still enabled on this host, it must be stopped and masked first.",
        "submission_port",
        "2526",
    ),
    "mx-05": Trouble(
        "apply: certificate /etc/relay/tls/mx-05.pem expires in 2 days (floor: 14 days)",
        "openssl x509 -in /etc/relay/tls/mx-05.pem -noout -enddate -issuer",
        "notAfter=Nov  8 04:12:51 2026 GMT\nissuer=O = Tidewater Internal CA, CN = relay issuing 3",
        "A certificate from the old issuing CA; issuing 4 renews it at once.",
        "issuer",
        '"relay issuing 4"',
    ),
    "mx-08": Trouble(
        "apply: spool filesystem 97 % full, refusing to start (spool.min_free = 5 %)",
        "du -x -d1 -h /var/spool/relay",
        "212M  /var/spool/relay/active\n61G   /var/spool/relay/corrupt\n1.3G  /var/spool/relay/deferred\n"
        "4.0K  /var/spool/relay/hold",
        "61 GB of corrupt entries from the March outage. The runbook allows moving them to cold storage.",
        "min_free_percent",
        "5",
    ),
    "mx-10": Trouble(
        "selftest: DKIM signature invalid: body hash did not verify (selector tw2026b)",
        "relayctl dkim --check tw2026b",
        "selector tw2026b: key file 1704 bytes, DNS record published 2026-09-30\nkey in DNS and key on disk DIFFER",
        "This host missed the key rotation of 30 September; the key is copied from mx-09.",
        "selector",
        '"tw2026b"',
    ),
    "mx-12": Trouble(
        "apply: policy daemon: lua error: filters/greylist.lua:88: attempt to index nil value 'peer.asn'",
        "sed -n 80,94p /etc/relay/filters/greylist.lua",
        "80  function greylist(peer, rcpt)\n86    local key = peer.addr .. rcpt.domain\n"
        "88    if trusted[peer.asn.number] then\n89      return ACCEPT\n90    end",
        "Schema 4 makes peer.asn optional; the filter needs a guard for peers without a network number.",
        "asn_lookup",
        "true",
    ),
    "mx-13": Trouble(
        "selftest: queue manager does not drain: 0 of 40 probes delivered in 60 s",
        "resolvectl query mx.selftest.tidewater.example",
        "mx.selftest.tidewater.example: resolve call failed: DNSSEC validation failed: signature-expired",
        "Not the relay: the clock of this host is 9 days behind, so signatures look expired.",
        "ntp",
        '"time.tidewater.example"',
    ),
}
# What puts each host right, beside its configuration.
CURES: dict[str, tuple[str, str]] = {
    "mx-04": (
        "systemctl disable --now relay-legacy && systemctl mask relay-legacy",
        "Removed relay-legacy.service from multi-user.target.\nrelay-legacy.service is masked.",
    ),
    "mx-05": (
        "relayctl cert renew --issuer 'relay issuing 4'",
        "renewed /etc/relay/tls/mx-05.pem, serial 7C:19:04:EE, valid until 2027-11-06T23:59:59Z",
    ),
    "mx-08": (
        "relayctl archive --queue corrupt --to cold-2 --verify",
        "moved 181,402 entries (61 GB) to cold-2, digests verified\n/var/spool/relay: 34 % full",
    ),
    "mx-10": (
        "relayctl dkim --install tw2026b --from mx-09",
        "installed tw2026b (1704 bytes, 2048 bit)\nkey in DNS and key on disk are the same",
    ),
    "mx-12": (
        "sed -i '88s/trusted/peer.asn and trusted/' /etc/relay/filters/greylist.lua && luac -p "
        "/etc/relay/filters/greylist.lua",
        "(no output)",
    ),
    "mx-13": (
        "chronyc makestep && chronyc tracking | grep 'System time'",
        "200 OK\nSystem time     : 0.000012 seconds fast of NTP time",
    ),
}
UNITS = ("smtpd", "qmgr", "policy", "tlsproxy", "anvil", "cleanup", "verify", "dnsbl")
NOTES = (
    "connect from {peer} established tls1.3 cipher=TLS_AES_256_GCM_SHA384",
    "queue id {qid}: from=<hidden> size={size} nrcpt={n} (queue active)",
    "queue id {qid}: to=<hidden> relay={relay} delay={delay} dsn=2.0.0 status=sent",
    "queue id {qid}: deferred (host {relay} said: 451 4.7.1 try again later) delay={delay}",
    "statistics: max connection rate {n}/60s for {peer}",
    "warning: {peer} greylisted for {size} s, score {delay}",
    "lookup of {relay} took {delay} s (cache miss)",
    "removed {qid}",
    "reload of table access.map: {size} entries, {n} changed",
    "tls session cache: {n} hits, {size} entries",
)
PEERS = (
    "kestrel.example",
    "lindgate.example",
    "oversea.example",
    "papermill.example",
    "mxq.example",
)


def config(host: str, schema_version: int, rng: Random, extra: str = "") -> str:
    """A host's configuration file."""
    old = schema_version == 3
    listeners = "\n".join(
        f'[[listener]]\nname = "in-{at}"\nbind = "10.{rng.randrange(8, 40)}.{rng.randrange(256)}.{at + 10}"\n'
        f"port = {port}\nmax_sessions = {rng.randrange(2, 40) * 25}"
        for at, port in enumerate((25, 587, 2525))
    )
    routes = "\n".join(
        f'[[route]]\ndomain = "{peer}"\n{"relay_host" if old else "next_hop"} = "out-{rng.randrange(1, 7)}.{peer}"\n'
        f"{'retry_minutes' if old else 'retry_s'} = {rng.randrange(2, 12) * (1 if old else 60)}"
        for peer in PEERS
    )
    return (
        f'# {host}, managed by hand until TW-2291 is done\nschema = {schema_version}\nhost = "{host}"\n'
        f"workers = {rng.randrange(4, 17)}\n\n[tls]\n"
        f'{"min_version" if old else "floor"} = "1.2"\ncert = "/etc/relay/tls/{host}.pem"\n\n'
        f'{listeners}\n\n{routes}\n\n[spool]\npath = "/var/spool/relay"\nmin_free_percent = 5\n'
        f"{extra}"
    )


def clock(minutes: int) -> str:
    """The time of so many minutes into the night that begins on 6 November at 20:00 UTC."""
    hour, minute = divmod(20 * 60 + minutes, 60)
    return f"2026-11-{6 + hour // 24:02}T{hour % 24:02}:{minute:02}"


def journal(host: str, rng: Random, lines: int, minutes: int) -> str:
    """A stretch of a host's journal."""
    out: list[str] = []
    second = 0
    for _ in range(lines):
        second += rng.randrange(0, 9)
        note = rng.choice(NOTES).format(
            peer=f"{rng.choice(PEERS)}[10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}]",
            qid=f"{rng.getrandbits(44):011X}",
            relay=f"out-{rng.randrange(1, 7)}.{rng.choice(PEERS)}",
            size=rng.randrange(400, 90_000),
            n=rng.randrange(1, 40),
            delay=round(rng.expovariate(0.4), 2),
        )
        at = f"{clock(minutes + second // 60)}:{second % 60:02}Z"
        out.append(f"{at} {host} relay/{rng.choice(UNITS)}[{rng.randrange(900, 32_000)}]: {note}")
    return "\n".join(out)


class Rollout:
    """The state that the run changes: the plan file and the configuration of every host."""

    def __init__(self, run: Run, rng: Random) -> None:
        self.run, self.rng = run, rng
        self.hosts = [f"mx-{at:02}" for at in range(1, 15)]
        self.files = {host: config(host, 3, Random(host)) for host in self.hosts}
        self.state = dict.fromkeys(self.hosts, "schema 3")
        self.learned: list[str] = []
        self.minutes = 6

    def plan(self) -> str:
        """The text of rollout.md."""
        rows = "\n".join(f"| {host} | {state} |" for host, state in self.state.items())
        notes = "\n".join(f"- {note}" for note in self.learned) or "- nothing yet"
        return f"# TW-2291: relays to schema 4\n\n| host | state |\n|---|---|\n{rows}\n\n## Learned\n{notes}\n"

    def read_plan(self, why: str = "") -> None:
        """Read the plan again."""
        self.run.call(why, Call("read", {"host": "plan", "path": "rollout.md"}, self.plan()))

    def note(self, host: str, state: str, learned: str = "") -> None:
        """Write the plan; a note that is about no host in particular has no state."""
        before = self.plan()
        if state:
            self.state[host] = state
        if learned:
            self.learned.append(f"{host}: {learned}")
        arguments = {"host": "plan", "path": "rollout.md", "content": self.plan()}
        self.run.call("", Call("write", arguments, diff("rollout.md", before, self.plan())))

    def metrics(self, hosts: list[str], why: str = "") -> None:
        """Read the numbers of some hosts."""
        rng = self.rng
        result = {
            host: {
                "queue_active": rng.randrange(3, 48),
                "queue_deferred": rng.randrange(100, 900),
                "sent_per_min": rng.randrange(60, 1_900),
                "cpu_percent": round(rng.uniform(3, 71), 1),
                "schema": int(self.state[host][7]) if self.state[host].startswith("schema") else 3,
            }
            for host in hosts
        }
        self.run.call(why, Call("metrics", {"hosts": hosts}, json.dumps(result, indent=1)))

    def command(
        self, host: str, line: str, result: str, why: str = "", *, bad: bool = False
    ) -> None:
        """Run a command on a host."""
        self.run.call(why, Call("run", {"host": host, "command": line}, result, is_error=bad))

    def logs(self, host: str, lines: int, why: str = "", *, last: str = "") -> None:
        """Read a host's journal; ``last`` is an error at its end."""
        arguments = {"host": host, "unit": "relay", "lines": lines, "filter": {"level": "info"}}
        text = journal(host, self.rng, lines, self.minutes)
        self.minutes += 5
        if last:
            text += f"\n{clock(self.minutes)}:59Z {host} relay/master[871]: fatal: {last}"
        self.run.call(why, Call("logs", arguments, text))

    def host(self, host: str) -> None:
        """One relay from schema 3 to schema 4."""
        path = "/etc/relay/relay.toml"
        trouble = TROUBLES.get(host)
        self.minutes += self.rng.randrange(14, 26)
        self.metrics([host], f"{host} is next. First its queue.")
        self.run.call("", Call("read", {"host": host, "path": path}, self.files[host]))
        new = config(host, 4, Random(host))
        if host == "mx-02":
            new = new.replace("floor =", "min_version =")
        self.write(host, path, new, "Rewritten for schema 4: keys renamed, minutes become seconds.")
        if trouble and trouble.error.startswith("validate"):
            self.command(host, "relayctl validate", f"{trouble.error}\n1 error", bad=True)
            self.fix(host, path, trouble)
        routes = sum(line == "[[route]]" for line in new.splitlines())
        self.command(
            host, "relayctl validate", f"relay.toml: schema 4, 3 listeners, {routes} routes: ok"
        )
        if trouble and not trouble.error.startswith("validate"):
            self.command(
                host,
                "relayctl apply --drain 30",
                f"draining ...\n{trouble.error}\nrolled back",
                bad=True,
            )
            self.fix(host, path, trouble)
            self.command(
                host, "relayctl validate", f"relay.toml: schema 4, 3 listeners, {routes} routes: ok"
            )
        drained = self.rng.randrange(2, 41)
        self.command(
            host,
            "relayctl apply --drain 30",
            f"draining {drained} sessions ... done\nreloaded in {self.rng.randrange(300, 2_400)} ms, schema 4",
        )
        self.logs(host, self.rng.choice((12, 25, 40, 90)), "Looking for anything unusual.")
        self.command(
            host,
            "relayctl selftest",
            f"40 of 40 probes delivered, p95 {self.rng.uniform(0.4, 2):.2f} s",
        )
        self.note(
            host,
            f"schema 4 since {clock(self.minutes)[11:]} UTC",
            trouble.insight if trouble else "",
        )

    def write(self, host: str, path: str, new: str, why: str) -> None:
        """Replace a host's configuration."""
        before, self.files[host] = self.files[host], new
        arguments = {"host": host, "path": path, "content": new}
        self.run.call(why, Call("write", arguments, diff(path, before, new)))

    def fix(self, host: str, path: str, trouble: Trouble) -> None:
        """Find the cause of a host's trouble and repair it."""
        phase, _, reason = trouble.error.partition(": ")
        self.logs(host, 60, f"It failed in {phase}. The journal first.", last=reason)
        why = "The journal only repeats it. Looking closer."
        self.command(host, trouble.look, trouble.seen, why)
        if host in CURES:
            self.command(host, *CURES[host], trouble.insight)
        self.run.call(
            "" if host in CURES else trouble.insight,
            Call("read", {"host": host, "path": path}, self.files[host]),
        )
        new = config(host, 4, Random(host), f"\n[local]\n{trouble.key} = {trouble.value}\n")
        self.write(host, path, new, "")


def build() -> Run:
    """The run."""
    rng = Random(2291)
    run = Run("ops", "Fourteen mail relays to a new schema, one by one", SYSTEM, TOOLS)
    roll = Rollout(run, rng)
    run.user(
        "TW-2291: move all relays to schema 4 tonight, one after the other. Never touch mx-07 before you "
        "have asked me, and never run `relayctl purge` anywhere. If two hosts in a row fail, stop and tell me."
    )
    roll.read_plan("I begin with the plan.")
    roll.metrics(roll.hosts, "And with the state of all of them.")
    talk = {
        "mx-03": (
            "How is it going? And from now on keep the summary in this chat under five lines, please.",
            "Two relays done, mx-02 needed `tls.floor`. No message lost, queues below 50. mx-03 is next.",
        ),
        "mx-06": (
            "Finance asks whether invoices (out-3) are delayed. Decision: out-3 keeps priority until 06:00 UTC.",
            "Invoices are not delayed. Noted: out-3 has priority until 06:00 UTC. mx-04 and mx-05 each failed "
            "once, for different reasons that were local; both are on schema 4 now. May I continue?",
        ),
        "mx-09": (
            "Yes continue. What was wrong on mx-08?",
            "Its spool was 97 % full: 61 GB of corrupt entries from March, moved to cold storage by runbook.",
        ),
        "mx-11": (
            "Correction: priority for out-3 only until 04:00 UTC, not 06:00. Tell the night shift.",
            "Changed: out-3 has priority until 04:00 UTC, it is in rollout.md. mx-10 had an old DKIM key.",
        ),
        "mx-14": (
            "Before mx-14: which ones had clock problems? I want to open a ticket.",
            "Only mx-13: nine days behind, now on time.tidewater.example. mx-12's trouble was greylist.lua:88.",
        ),
    }
    for at, host in enumerate(roll.hosts):
        if host in talk:
            question, reply = talk[host]
            run.user(question)
            if host == "mx-11":
                roll.note(
                    "out-3", "", "priority until 04:00 UTC, not 06:00 (decision of 6 November)"
                )
            run.say(reply)
            run.user("ok, go on")
        if host == "mx-07":
            run.say(
                "mx-07 is next in order. It holds the only copy of the quarantine, so I ask before I touch "
                "it: now with a drain, or after mx-14?"
            )
            run.user("After mx-14, and only with a copy of the quarantine on mx-08 first.")
            roll.note(host, "waits until after mx-14, copy of the quarantine to mx-08 first")
            continue
        roll.host(host)
        if at % 3 == 2:
            roll.read_plan("Reading the plan before I go on.")
        if at % 4 == 1:
            roll.metrics(roll.hosts[: at + 1], "A look at everything that was moved.")
    run.say("All but mx-07 are on schema 4. The quarantine's copy would go to mx-08 now. Shall I?")
    run.user("Yes. Copy, verify, then mx-07.")
    digest = f"{rng.getrandbits(128):032x}"
    roll.command("mx-07", "rsync -a /var/quarantine/ mx-08:/var/quarantine-copy/",
                 "sent 8,431,207,664 bytes, 52,118 files, 0 errors")  # fmt: skip
    roll.command(
        "mx-08", "relayctl tree-digest /var/quarantine-copy", f"52118 files blake3 {digest}"
    )
    roll.command("mx-07", "relayctl tree-digest /var/quarantine", f"52118 files blake3 {digest}")
    roll.host("mx-07")
    roll.metrics(roll.hosts, "The last look at all fourteen.")
    roll.read_plan()
    run.say(
        "TW-2291 is done: fourteen relays on schema 4, none lost mail. mx-07 went last, with a verified copy "
        f"of the quarantine on mx-08 (52,118 files, blake3 {digest[:12]}). Seven hosts failed once; each cause "
        "is in rollout.md. out-3 has priority until 04:00 UTC."
    )
    return run
