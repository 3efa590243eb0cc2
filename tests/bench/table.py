#!/usr/bin/env python3
"""Results of nvpi_guard_bench as a Markdown table: a case a line, a contender a column.

    nvpi_guard_bench --benchmark_format=json > run1.json; ...
    tests/bench/table.py run1.json run2.json run3.json

Of several runs the best ratio of each contender counts. Bold: above the bar.
"""

import json
import sys
from pathlib import Path

# protect and verify_and_copy never meet in one case, so they share a column.
LIBRARY = {f"{function}{layout}": "library" + layout.replace("_", ", ")
           for function in ("protect", "verify_and_copy")
           for layout in ("_extended", "_separate", "")}

context = {}
cases: dict[str, dict[str, dict]] = {}
for path in sys.argv[1:]:
    report = json.loads(Path(path).read_text())
    context = report["context"]
    for result in report["benchmarks"]:
        case, contender = result["name"].split("/iterations:")[0].rsplit("/", 1)
        if contender.startswith(("memcpy", "crc16")):
            continue  # what the others are compared with
        results = cases.setdefault(case, {})
        column = LIBRARY.get(contender, contender)
        best = results.get(column, result)
        results[column] = min(best, result, key=lambda r: r["x_reference"])


def cell(result: dict | None) -> str:
    if result is None:
        return ""
    ratio = f"{result['x_reference']:.2f}"
    return f"**{ratio}**" if result["x_reference"] > result.get("bar", float("inf")) else ratio


columns = list(dict.fromkeys(column for results in cases.values() for column in results))
guards = ", ".join(f"{bits}b by {context[f'guard_{bits}b']}" for bits in (16, 32, 64))
print(f"{context['cpu']}; glibc {context['glibc']}; ISA-L {context['isal']}; {guards}\n")
print("| case | " + " | ".join(columns) + " | bar |")
print("|---" * (len(columns) + 2) + "|")
for case, results in cases.items():
    bars = {f"{r['bar']:.2f} {r['label'].split(', ')[1]}" for r in results.values() if "bar" in r}
    cells = [cell(results.get(column)) for column in columns]
    print(f"| {case} | " + " | ".join(cells) + f" | {', '.join(bars)} |")
