#!/usr/bin/env python3
"""Results of nvpi_guard_bench as a Markdown table: a case a line, a contender a column.

    nvpi_guard_bench --benchmark_format=json | tests/bench/table.py
"""

import json
import sys

report = json.load(sys.stdin)
cases: dict[str, dict[str, dict]] = {}
for result in report["benchmarks"]:
    case, contender = result["name"].split("/iterations:")[0].rsplit("/", 1)
    cases.setdefault(case, {})[contender] = result

# The fixed ones first; protect and verify_and_copy never meet in one case and share a column.
column_of = {"protect_extended": "library, extended", "verify_and_copy_extended": "library, extended",
             "protect_separate": "library, separate", "verify_and_copy_separate": "library, separate",
             "protect": "library", "verify_and_copy": "library"}
judged = {}
for results in cases.values():
    for name, result in results.items():
        if "bar" in result or name in column_of:
            judged.setdefault(column_of.get(name, name), None)

context = report["context"]
print(f"{context['cpu']}; glibc {context['glibc']}; ISA-L {context['isal']}; guards by "
      f"{', '.join(context[f'guard_{bits}b'] for bits in (16, 32, 64))}\n")
print("| case | " + " | ".join(judged) + " | bar |")
print("|---" * (len(judged) + 2) + "|")
for case, results in cases.items():
    ratios = {column_of.get(name, name): result for name, result in results.items()}
    cells = []
    for column in judged:
        result = ratios.get(column)
        if result is None:
            cells.append("")
            continue
        text = f"{result['x_reference']:.2f}"
        cells.append(f"**{text}**" if result["x_reference"] > result.get("bar", 1e9) else text)
    bars = {f"{r['bar']:.2f} {r['label'].split(', ')[1]}" for r in results.values() if "bar" in r}
    print(f"| {case} | " + " | ".join(cells) + f" | {', '.join(bars)} |")
