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


def medians(found):
    return {name: statistics.median(values) for name, values in found.items() if values}


def target_of(row, found):
    """The least that the row's target allows; None if it has none, or its peer is not here."""
    return min(row.target.of(medians(found)), default=None) if row.target else None


def missed(row, found):
    """Three quarters of the runs are above the target."""
    target, values = target_of(row, found), found["motet"]
    quartile = statistics.quantiles(values, n=4, method="inclusive")[0] if len(values) > 1 else values[0]
    return target is not None and quartile > target


def verdict(row, found):
    target = target_of(row, found)
    if target is None:
        return "–"
    return f"{number(target)}: {'missed' if missed(row, found) else 'met'}"


def times_the_limit(found):
    middles = medians(found)
    return f"{number(middles['motet'] / middles['limit'])}" if "limit" in middles else "–"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def table(results):
    peers = [name for name in COLOURS if name not in ("limit", "motet")
             and any(name in found for _, found in results)]
    lines = [line(["what", "unit", "limit", "motet", "× the limit", "target", *peers]),
             "|---" * (6 + len(peers)) + "|"]
    for row, found in results:
        lines.append(line([row.label, row.unit, middle(found.get("limit")), middle(found["motet"]),
                           times_the_limit(found), verdict(row, found),
                           *(middle(found.get(name)) for name in peers)]))
    return "\n".join(lines)


def picture(results):
    """Bars, one group a row, each drawn relative to the longest of its row."""
    width, left, bar, gap = 760, 300, 13, 12
    parts, y = [], 34
    present = [name for name in COLOURS if any(found.get(name) for _, found in results)]
    for place, name in enumerate(present):
        x = left + 90 * place
        parts.append(f'<rect x="{x}" y="8" width="11" height="11" fill="{COLOURS[name]}"/>'
                     f'<text x="{x + 16}" y="18">{name}</text>')
    for row, found in results:
        shown = sorted(medians(found).items(), key=lambda each: list(COLOURS).index(each[0]))
        longest = max(value for _, value in shown)
        parts.append(f'<text x="{left - 10}" y="{y + 11}" text-anchor="end">{row.label}</text>')
        for name, value in shown:
            length = max(2, (width - left - 120) * value / longest)
            parts.append(f'<rect x="{left}" y="{y}" width="{length:.0f}" height="{bar - 2}" '
                         f'fill="{COLOURS[name]}"/><text x="{left + length + 6:.0f}" y="{y + 10}">'
                         f'{number(value)} {row.unit}</text>')
            y += bar
        y += gap
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
            f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" '
            f'fill="white"/>{"".join(parts)}</svg>\n')


def put(document, name, text):
    """Replaces what is between the two marks of that name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = document.split(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"
