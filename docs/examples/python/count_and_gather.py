"""Counts ads by format, gathers them into the dataset, and queries the dataset, within a limit on credits.

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
MAX_CREDITS = 50

BY_FORMAT = """
SELECT displayFormat, count(*) AS ads, count(DISTINCT variant) AS messages, median(daysRunning) AS medianDays
FROM ads JOIN ad_countries USING (id) WHERE country = 'DE' GROUP BY 1 ORDER BY 2 DESC
"""


class ToolError(Exception):
    """A failed call. The message says what happened and what to do next."""


remaining_credits = MAX_CREDITS


async def call_tool(client: Client, tool: str, **arguments) -> dict:
    """Calls a tool and returns its result as data. Subtracts the charge of the call from remaining_credits."""
    global remaining_credits
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise ToolError(f"{tool}: {result.content[0].text}")
    charged = result.structured_content["receipt"]["charged"]
    # If the charge is unknown, the call may have used up all remaining credits.
    remaining_credits = 0 if charged is None else max(0, remaining_credits - charged)
    return result.structured_content


async def research(client: Client) -> None:
    counts = await call_tool(client, "count_ads", filters=QUESTION, by="displayFormat", maxCredits=remaining_credits)
    print(f"{counts['total']} ads in all:")
    for part in counts["counts"]:
        print(f"  {part['filters']['displayFormat'][0]}: {part['total']}")

    estimate = (await call_tool(client, "gather_ads", filters=QUESTION, maxCredits=0))["estimate"]
    if estimate["credits"] is not None:
        price = f"about {estimate['credits']} credits"
    else:  # The server learns prices from charges, so it may not know this price yet.
        price = f"at most {estimate['atMost']} credits" if "atMost" in estimate else "an unknown number of credits"
    print(f"Reading all ads takes {estimate['pages']} calls and {price}; the limit is {MAX_CREDITS}.")

    gathering = await call_tool(client, "gather_ads", filters=QUESTION, maxCredits=remaining_credits)
    # The next call continues where the previous call stopped, and never pays twice for a page. maxCredits limits only a
    # single call, so pass the credits that remain.
    while gathering["stopped"] == "deadline" and remaining_credits > 0:
        gathering = await call_tool(client, "gather_ads", filters=QUESTION, maxCredits=remaining_credits)
    print(f"Read {gathering['read']} of {gathering['found']}, complete: {gathering['complete']}.")

    answer = await call_tool(client, "query_ads", sql=BY_FORMAT)  # free
    for row in [answer["columns"], *answer["rows"]]:
        print("  " + " | ".join(str(cell) for cell in row))
    incomplete = answer["coverage"].get("partial", [])
    if incomplete:
        print(f"These gatherings are not complete: {incomplete}")
    else:
        print("The figures are based on all matching ads.")


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
