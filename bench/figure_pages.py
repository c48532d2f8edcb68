# SPDX-License-Identifier: MIT
"""What figures.py has measured, as a table and as a picture."""

import statistics

COLOURS = {"limit": "#9aa5b1", "motet": "#1f77b4", "Boost.Fiber": "#d98e4a", "Go": "#5aa469",
           "tokio": "#c2a83e", "Asio": "#8d6cab", "libuv": "#6aaab5",
           "std": "#b5565a"}


def number(value):
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


def middle(values):
    if not values:
        return "–"
    return f"{number(statistics.median(values))} ({number(min(values))}–{number(max(values))})"


def medians(runs):
    return {name: statistics.median(values) for name, values in runs.items() if values}


def target_of(row, runs):
    """The least that the row's target allows; None if it has none, or its peer is not here."""
    return min(row.target.of(medians(runs)), default=None) if row.target else None


def missed(row, runs):
    """Three quarters of the runs are above the target."""
    target, values = target_of(row, runs), runs["motet"]
    quartile = statistics.quantiles(values, n=4, method="inclusive")[0] if len(values) > 1 else values[0]
    return target is not None and quartile > target


def verdict(row, runs):
    target = target_of(row, runs)
    if target is None:
        return "–"
    return f"{number(target)}: {'missed' if missed(row, runs) else 'met'}"


def times_the_limit(runs):
    middles = medians(runs)
    return f"{number(middles['motet'] / middles['limit'])}" if "limit" in middles else "–"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def table(results):
    peers = [name for name in COLOURS if name not in ("limit", "motet")
             and any(name in runs for _, runs in results)]
    lines = [line(["what", "unit", "limit", "motet", "× the limit", "target", *peers]),
             "|---" * (6 + len(peers)) + "|"]
    for row, runs in results:
        lines.append(line([row.label, row.unit, middle(runs.get("limit")), middle(runs["motet"]),
                           times_the_limit(runs), verdict(row, runs),
                           *(middle(runs.get(name)) for name in peers)]))
    return "\n".join(lines)


def picture(results):
    """Bars, one group a row, each drawn relative to the longest of its row."""
    width, margin, bar, gap = 760, 300, 13, 12
    parts, y = [], 34
    names = [name for name in COLOURS if any(runs.get(name) for _, runs in results)]
    for place, name in enumerate(names):
        x = margin + 90 * place
        parts.append(f'<rect x="{x}" y="8" width="11" height="11" fill="{COLOURS[name]}"/>'
                     f'<text x="{x + 16}" y="18">{name}</text>')
    for row, runs in results:
        middles = sorted(medians(runs).items(), key=lambda item: list(COLOURS).index(item[0]))
        longest = max(value for _, value in middles)
        parts.append(f'<text x="{margin - 10}" y="{y + 11}" text-anchor="end">{row.label}</text>')
        for name, value in middles:
            length = max(2, (width - margin - 120) * value / longest)
            parts.append(f'<rect x="{margin}" y="{y}" width="{length:.0f}" height="{bar - 2}" '
                         f'fill="{COLOURS[name]}"/><text x="{margin + length + 6:.0f}" y="{y + 10}">'
                         f'{number(value)} {row.unit}</text>')
            y += bar
        y += gap
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
            f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" '
            f'fill="white"/>{"".join(parts)}</svg>\n')


def put(document, name, text):
    """Replaces what is between the two marks of that name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, rest = document.split(begin)
    return f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}"
