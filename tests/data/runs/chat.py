"""A chat without tools: planning a choir's concert programme over a long evening."""

# ruff: noqa: E501, ISC004 - the words of the conversation, kept in one piece

from __future__ import annotations

from runs.run import Run

SYSTEM = (
    "You are a patient sounding board for amateur musicians. Give concrete suggestions, say when "
    "you are unsure, and do not flatter. Never propose anything that needs paid sheet music."
)

# Pairs of what the conductor asks and what comes back.
TALK: list[tuple[str, str]] = [
    (
        "I conduct a village choir, 23 people, only four of them men. We have a concert in the old "
        "ferry house on 12 December and so far no programme. Where do I start?",
        "Start from what you cannot change: four men means you should treat them as one part. So "
        "look for three-part settings (soprano, alto, men) and for rounds. Then the room: a ferry "
        "house will be dry, so avoid long sustained chords and prefer text-driven pieces. Third, "
        "the length: how long should the concert be, and is there an interval?",
    ),
    (
        "55 minutes without interval. It seats 90. And yes it is very dry, you hear every consonant.",
        "Then I would aim at 42 minutes of singing in five blocks, with four spoken bridges of two "
        "minutes each. Spoken bridges suit a dry room. Leave five minutes for coming in and for "
        "one encore. A first skeleton:\n\n1. Arrival (2 pieces, walking in)\n2. Water (3)\n3. Dark "
        "months (3)\n4. Something everyone sings along (2)\n5. Home (2)\n\nWhich pieces does the "
        "choir already know by heart?",
    ),
    (
        "By heart: 'Three Herons', the 'Lock-keeper's Round', and a lullaby my grandmother wrote, "
        "we call it 'Anneke's boat'. We also half know a Kyrie.",
        "Good material. The round is your walking-in piece: it can begin with three people and "
        "fill up as the others arrive on stage. 'Anneke's boat' is your ending; nobody else has "
        "it, and that is what people will remember. 'Three Herons' opens the water block. I would "
        "leave the Kyrie out: half known and sustained is the worst combination in a dry room.",
    ),
    (
        "Hmm, the altos love the Kyrie. Can we save it somehow?",
        "You can shorten it. Take only the first section, one voice per part for the opening "
        "phrase, everyone at the repeat, and no slower than about 66 to the minute. If it still "
        "sags by the rehearsal of 21 November, drop it. Put that date in writing now, it makes the "
        "decision easier later.",
    ),
    (
        "OK agreed: decision on the Kyrie at the rehearsal on 21 November, not later. Who speaks "
        "the bridges? I hate speaking in public.",
        "Not you, then. Two voices from different generations would be best: one of the men and "
        "the youngest soprano, say. Give each two bridges, at most 180 words, and have them "
        "written out. A dry room forgives no improvisation.",
    ),
    (
        "Wietse and Fenna. Fenna is 16 and very good. What would the bridges be about?",
        "One thread through all four. The ferry itself is the obvious one: who crossed, when and "
        "why. (1) The bell: how people called the ferry. (2) The winter the river froze. (3) A "
        "crossing that went wrong, told lightly. (4) The last day the ferry ran. If nobody has "
        "those stories, ask at the local archive; do not invent them.",
    ),
    (
        "The last day was 30 June 1974, my mother was on board. The freezing winter was 62/63.",
        "Then bridge four is a witness account, and you have the ending: your mother's last "
        "crossing, straight into 'Anneke's boat' with no applause between. Ask the audience for "
        "that in the printed programme: 'Please hold your applause until the end of the last song'.",
    ),
    (
        "That gave me goosebumps. Now the middle: what would you do for 'Dark months'? Remember, "
        "free music only.",
        "Three ideas, all from old sources that are free to copy: a carol in three parts with the "
        "tune in the men; a solo verse with the others humming on an open fifth, which a dry room "
        "tolerates because you can keep it short; and a round in a minor key, taught by ear. I am "
        "not certain about the legal state of any particular modern edition, so use the oldest "
        "print that you can find or write the parts out yourself.",
    ),
    (
        "I can write parts out. What range should I respect? My altos go down to G.",
        "Soprano: up to E, an F in passing. Alto: G to A above, comfortable until B flat. The men "
        "as one part: C below the stave's middle to D above; with four men of mixed kind avoid "
        "anything under low B flat. Keep the alto moving by step, and give the men the root at "
        "cadences. Check each page by singing it, not at the piano.",
    ),
    (
        "Sing-along block: people here do sing, but only if they know it. Two songs. Ideas?",
        "One that everybody over fifty knows and one that the schoolchildren learned this year; "
        "call the school and ask. Print the words in large type, 14 points, two verses only. Fenna "
        "starts, the choir joins, you turn to the audience at the second verse. Do not explain "
        "anything: turning round is enough.",
    ),
    (
        "And the budget is zero, apart from 120 euro for heating. Is it worth printing a programme?",
        "Yes, one folded sheet, words of the sing-along inside, the thanks on the back. If 90 "
        "sheets are too dear, put two on a page and cut them. Heating matters more: voices go flat "
        "in a cold hall, so heat from three in the afternoon, not from six.",
    ),
    (
        "Write me the order with minutes, please. Kyrie in brackets.",
        "| | piece | minutes |\n|---|---|---|\n| 1 | Lock-keeper's Round (walking in) | 4 |\n"
        "| | bridge: the bell (Wietse) | 2 |\n| 2 | Three Herons; a rowing song; [Kyrie] | 11 |\n"
        "| | bridge: winter 62/63 (Fenna) | 2 |\n| 3 | carol, solo verse, minor round | 10 |\n"
        "| | bridge: the crossing that went wrong (Wietse) | 2 |\n| 4 | two sing-alongs | 8 |\n"
        "| | bridge: 30 June 1974 (Fenna) | 2 |\n| 5 | Home: evening song, Anneke's boat | 8 |\n\n"
        "49 minutes with the Kyrie, 45 without: both fit into 55.",
    ),
    (
        "Rehearsals: we have six Thursdays left, 90 minutes each. Can you split it?",
        "Six times 90 minutes, in this order: (1) minor round by ear, carol notes; (2) rowing song, "
        "solo verse, choose the soloist; (3) everything slow, words only, speak the rhythm; (4) 21 "
        "November: run blocks 1 to 3, decide on the Kyrie; (5) run with bridges and a stopwatch; "
        "(6) in the ferry house, coats off, heating tested. Note that 21 November is a Saturday in "
        "2026: is that an extra rehearsal?",
    ),
    (
        "Oh. You're right, it's Thursday the 19th. Correct it everywhere.",
        "Corrected: the decision about the Kyrie falls at the rehearsal on Thursday 19 November, "
        "not on the 21st. Rehearsal (4) is the one on the 19th. Everything else stays as it is.",
    ),
    (
        "Thank you. Give me the shortest possible list of what is decided and what is open.",
        "Decided: 12 December, ferry house, 55 minutes, no interval; free music only; round first, "
        "'Anneke's boat' last without applause before it; Wietse and Fenna speak; decision about "
        "the Kyrie on 19 November; heating from three o'clock.\n\nOpen: the soloist; the two "
        "sing-along songs (ask the school); the archive for bridges one and three; who prints.",
    ),
]


def build() -> Run:
    """The run."""
    run = Run("chat", "A choir's concert programme, no tools", SYSTEM)
    for question, answer in TALK:
        run.user(question)
        run.say(answer)
    return run
