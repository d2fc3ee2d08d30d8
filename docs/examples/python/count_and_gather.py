"""Counts ads by format, gathers them into the dataset, and queries the dataset, within limits on credits.

    pip install mcp
    AD_LIBRARY_API_KEY=svc_live_… python count_and_gather.py http://127.0.0.1:3000/mcp

You need Python 3.11. Start a server first: `node dist/main.js http`, or `node dist/main.js http --demo`, which needs no
key.
"""

import argparse
import asyncio
import os
import sys

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

QUESTION = {"countries": ["DE"]}
# Each step has its own limit, because a service may not state the charge of the count.
MAX_COUNT_CREDITS = 10
MAX_GATHER_CREDITS = 40

BY_FORMAT = """
SELECT displayFormat, count(*) AS ads, count(DISTINCT variant) AS messages, median(daysRunning) AS medianDays
FROM ads JOIN ad_countries USING (id) WHERE country = 'DE' GROUP BY 1 ORDER BY 2 DESC
"""


class ToolError(Exception):
    """A failed call. The message says what happened and what to do next."""


async def call_tool(client: Client, tool: str, **arguments) -> dict:
    """Calls a tool and returns its result as data."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise ToolError(f"{tool}: {result.content[0].text}")
    return result.structured_content


async def research(client: Client) -> None:
    counts = await call_tool(client, "count_ads", filters=QUESTION, by="displayFormat", maxCredits=MAX_COUNT_CREDITS)
    print(f"{counts['total']} ads in all:")
    for part in counts["counts"]:
        print(f"  {part['filters']['displayFormat'][0]}: {part['total']}")

    remaining_credits = MAX_GATHER_CREDITS
    gathering = await call_tool(client, "gather_ads", filters=QUESTION, maxCredits=remaining_credits)
    # The next call continues where the previous call stopped, and never pays twice for a page. maxCredits limits only a
    # single call, so pass the credits that remain. A call with an unknown charge may have spent all of them.
    while gathering["stopped"] == "deadline":
        charged = gathering["receipt"]["charged"]
        remaining_credits -= remaining_credits if charged is None else charged
        if remaining_credits <= 0:
            break
        gathering = await call_tool(client, "gather_ads", filters=QUESTION, maxCredits=remaining_credits)
    print(f"Read {gathering['read']} of {gathering['found']}, complete: {gathering['complete']}.")

    answer = await call_tool(client, "query_ads", sql=BY_FORMAT)  # free
    for row in [answer["columns"], *answer["rows"]]:
        print("  " + " | ".join(str(cell) for cell in row))
    if gathering["complete"]:
        print("The figures are based on all matching ads.")
    else:
        print(f"The figures are not based on all matching ads. Reading stopped: {gathering['stopped']}.")


async def main(url: str) -> str | None:
    """Runs the program. Returns the problem if it failed."""
    key = os.environ.get("AD_LIBRARY_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    problem = None
    try:
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http_client:
            async with Client(streamable_http_client(url, http_client=http_client)) as client:
                await research(client)
    except* httpx2.TransportError:
        problem = f"No server at {url}: start one with `node dist/main.js http --demo`."
    except* (ToolError, MCPError) as errors:
        problem = str(first_error_in(errors))
    return problem


def first_error_in(error: BaseException) -> BaseException:
    """Returns the first error of a group. Concurrent tasks raise their errors in groups."""
    return first_error_in(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:3000/mcp", help="address of the server")
    sys.exit(asyncio.run(main(parser.parse_args().url)))
