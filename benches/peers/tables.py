"""The results of a run, as tables in Markdown."""
import statistics

from views import DELTAS, TITLES, WORKLOADS

LABELS = list(DELTAS)
# Column, title, and how many times our figure the better of the other incremental systems shall have.
COLUMNS = [
    ("load", "load", 3),
    ("0.01", "0.01 %", 3),
    ("0.1", "0.1 %", 5),
    ("1", "1 %", 5),
    ("10", "10 %", 5),
    ("single", "one row", None),
    ("empty", "no row", None),
    ("resident", "memory", 2),
]
NAMES = {"ours": "deltaic", "differential": "differential", "dbsp": "dbsp", "duckdb": "DuckDB"}


def number(value):
    """Three digits that count."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}" if value >= 0.01 else f"{value:.4f}"


def table(header, rows):
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows]) + "\n"


def short(workload):
    return TITLES[workload].split(":")[0]


def threads(count):
    return "1 thread" if count == 1 else f"{count} threads"


def figures(entries):
    """The medians over all runs of a program: CPU times in ms, wall times in ms with `wall` before the name, MiB."""
    median = lambda values: statistics.median(list(values))
    result = {"peak": median(e["peak_mib"] for e in entries)}
    first = entries[0]

    def steps(name, steps):
        result[name] = median(step["cpu_s"] * 1e3 for step in steps)
        result["wall " + name] = median(step["wall_s"] * 1e3 for step in steps)

    if first["peer"] == "duckdb":
        steps("query", [run for e in entries for run in e["runs"]])
        return result
    steps("load", [e["load"] for e in entries])
    result["resident"] = median(e["load"]["resident_mib"] for e in entries)
    for label in first["deltas"]:
        steps(label, [step for e in entries for step in e["deltas"][label]])
    for name in ("single", "empty"):
        if name in first:
            result[name] = median(e[name]["cpu_s"] / e[name]["count"] * 1e3 for e in entries)
            result["wall " + name] = median(e[name]["median_us"] / 1e3 for e in entries)
    if "state_bytes" in first:
        result["state"] = median(e["state_bytes"] / 2**20 for e in entries)
    return result


class Results:
    """The lines of all programs."""

    def __init__(self, lines):
        self.lines = lines
        self.workloads = [workload for workload in WORKLOADS if self.systems(workload)]

    def entries(self, workload, peer, workers, share=None):
        wanted = (workload, peer, workers, share)
        return [e for e in self.lines if (e["workload"], e["peer"], e["workers"], e.get("share")) == wanted]

    def systems(self, workload):
        """Peer and workers, in the order of their first run."""
        return list(dict.fromkeys((e["peer"], e["workers"]) for e in self.lines if e["workload"] == workload))

    def figures(self, workload, peer, workers, share=None):
        entries = self.entries(workload, peer, workers, share)
        return figures(entries) if entries else {}

    def incremental(self, workload, workers):
        """The other systems that maintain the view."""
        return [peer for peer, count in self.systems(workload) if peer not in ("ours", "duckdb") and count == workers]

    def ratio(self, workload, column, workers, prefix=""):
        """How many times our figure the better of the other incremental systems has, and its name."""
        name = column if column == "resident" else prefix + column
        ours = self.figures(workload, "ours", workers).get(name)
        others = [(self.figures(workload, peer, workers).get(name), peer) for peer in self.incremental(workload, workers)]
        others = [(value, peer) for value, peer in others if value]
        if not ours or not others:
            return None
        value, peer = min(others)
        return value / ours, peer

    def has(self, peer, workers):
        return any(e["peer"] == peer and e["workers"] == workers for e in self.lines)

    def ratios(self, workers, prefix=""):
        rows = [["aim", *("" if aim is None else str(aim) for _, _, aim in COLUMNS)]]
        for workload in self.workloads:
            found = [(self.ratio(workload, column, workers, prefix), aim or 1) for column, _, aim in COLUMNS]
            rows.append([short(workload), *("" if ratio is None else shown(ratio[0], aim) for ratio, aim in found)])
        return table(["", *(title for _, title, _ in COLUMNS)], rows)

    def against_recompute(self):
        """How many times our CPU time DuckDB's query takes."""
        rows = []
        for workload in self.workloads:
            ours, duckdb = self.figures(workload, "ours", 1), self.figures(workload, "duckdb", 1)
            if ours and duckdb:
                ratios = [shown(duckdb["query"] / ours[column], 1) for column in ("load", *LABELS)]
                rows.append([short(workload), number(duckdb["query"]), *ratios])
        return table(["", "the query, ms", "load", *(f"{label} %" for label in LABELS)], rows)

    def shortfalls(self, workers, prefix=""):
        """Every cell of the table of ratios that is below its aim, the worst first; nothing if there is none."""
        found = []
        for workload in self.workloads:
            for column, title, aim in COLUMNS:
                ratio = self.ratio(workload, column, workers, prefix)
                if ratio and ratio[0] < (aim or 1):
                    found.append((*ratio, workload, column, title, aim))
        rows = []
        for ratio, peer, workload, column, title, aim in sorted(found, key=lambda cell: cell[0]):
            name, unit = (column, "MiB") if column == "resident" else (prefix + column, "ms")
            values = [f"{number(self.figures(workload, who, workers)[name])} {unit}" for who in ("ours", peer)]
            rows.append([f"{short(workload)}, {title}", values[0], f"{NAMES[peer]} {values[1]}", shown(ratio, 1), str(aim or "")])
        return table([threads(workers), "deltaic", "the better peer", "ratio", "aim"], rows) if rows else ""

    def memory(self):
        peers = [peer for peer in ("ours", "differential", "dbsp", "duckdb") if self.has(peer, 1)]
        header = ["MiB, 1 thread", "state"]
        header += [f"{NAMES[peer]} {what}" for what in ("resident", "peak") for peer in peers if (what, peer) != ("resident", "duckdb")]
        rows = []
        for workload in self.workloads:
            all_figures = {peer: self.figures(workload, peer, 1) for peer in peers}
            row = [short(workload), number(all_figures.get("ours", {}).get("state"))]
            for what in ("resident", "peak"):
                row += [number(all_figures[peer].get(what)) for peer in peers if (what, peer) != ("resident", "duckdb")]
            rows.append(row)
        return table(header, rows)

    def throughput(self):
        """Rows of the input per second of CPU."""
        rows = []
        for workload in self.workloads:
            peers = [peer for peer, workers in self.systems(workload) if peer != "duckdb" and workers == 1]
            for peer in peers:
                own, entry = self.figures(workload, peer, 1), self.entries(workload, peer, 1)[0]
                counts = {"load": entry["load"]["rows"]} | {label: steps[0]["rows"] for label, steps in entry["deltas"].items()}
                cells = [f"{counts[c] / own[c] / 1e3:.2f}" if c in counts and own.get(c) else "" for c in ("load", *LABELS)]
                rows.append([f"{short(workload)}, {NAMES[peer]}", *cells])
        return table(["million rows per CPU second, 1 thread", "load", *(f"{label} %" for label in LABELS)], rows)

    def crossover(self, shares):
        """Our CPU time by the share of rows that change, and where it reaches DuckDB's for the query."""
        rows = []
        for workload in self.workloads:
            duckdb, ours = self.figures(workload, "duckdb", 1), self.figures(workload, "ours", 1)
            if not duckdb or not ours:
                continue
            points = [(float(label), ours[label]) for label in LABELS]
            for share in shares:
                own = self.figures(workload, "ours", 1, share)
                points += [(float(share), own[str(share)])] if own else []
            times = [number(time) for _, time in points[2:]]
            rows.append([short(workload), number(duckdb["query"]), *times, equal_share(points, duckdb["query"])])
        header = ["CPU ms, 1 thread", "DuckDB's query", *(f"{share} %" for share in (1, 10, *shares))]
        return table([*header, "equal at"], rows)

    def times(self, workload):
        """CPU and wall medians of every system."""
        header = ["ms of CPU / wall", "load", *(f"{label} %" for label in LABELS), "one row, µs", "no row, µs", "resident MiB", "peak MiB"]
        rows, counted = [], {}
        for peer, workers in self.systems(workload):
            own = self.figures(workload, peer, workers)
            if not own:
                continue
            entry = self.entries(workload, peer, workers)[0]
            if peer == "duckdb":
                cells = [f"{pair(own, 'query')} (query)", *[""] * 6, ""]
            else:
                counted = counted or {"load": entry["load"]["rows"], **{label: steps[0]["rows"] for label, steps in entry["deltas"].items()}}
                cells = [*(pair(own, column) for column in ("load", *LABELS)), pair(own, "single", 1e3), pair(own, "empty", 1e3)]
                cells.append(number(own["resident"]))
            rows.append([f"{NAMES[peer]}, {threads(workers)}", *cells, number(own["peak"])])
        counts = ["rows", *(f"{counted[c]:,}" if c in counted else "" for c in ("load", *LABELS)), *[""] * 4]
        filled = [i for i in range(len(header)) if i == 0 or any(row[i] for row in rows)]
        pick = lambda row: [row[i] for i in filled]
        return f"### {TITLES[workload]}\n\n" + table(pick(header), [pick(row) for row in (counts, *rows)])


def shown(ratio, aim):
    """The ratio, in bold where it is below the aim."""
    text = f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 2 else f"{ratio:.2f}"
    return f"**{text}**" if ratio < aim else text


def pair(row, name, factor=1):
    return f"{number(row[name] * factor)} / {number(row['wall ' + name] * factor)}" if name in row else ""


def equal_share(points, time):
    """The share of rows at which the times, on straight lines between the points, reach this time."""
    below = (0.0, 0.0)
    for share, spent in points:
        if spent >= time:
            part = (time - below[1]) / (spent - below[1]) if spent > below[1] else 1
            return f"{below[0] + part * (share - below[0]):.2g} %"
        below = (share, spent)
    return f"above {points[-1][0]:g} %"
