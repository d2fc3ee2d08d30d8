"""Counts ads by format, reads them once into the dataset, and asks it, all under a limit on credits.

    pip install mcp
    AD_LIBRARY_API_KEY=svc_live_… python count_and_gather.py http://127.0.0.1:3000/mcp

It needs Python 3.11 and a server over HTTP: `node dist/main.js http`, or `node dist/main.js http --demo`, which needs
no key.
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
    """What the server says about a call that failed, and what to do next."""


async def call(client: Client, tool: str, **arguments) -> dict:
    """The result of a tool as data."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise ToolError(f"{tool}: {result.content[0].text}")
    return result.structured_content


async def research(client: Client) -> None:
    counted = await call(client, "count_ads", filters=QUESTION, by="displayFormat", maxCredits=MAX_CREDITS)
    print(f"{counted['total']} ads in all:")
    for part in counted["counts"]:
        print(f"  {part['filters']['displayFormat'][0]}: {part['total']}")

    estimate = (await call(client, "gather_ads", filters=QUESTION, maxCredits=0))["estimate"]
    if estimate["credits"] is not None:
        price = f"about {estimate['credits']} credits"
    else:  # until more prices were seen
        price = f"at most {estimate['atMost']} credits" if "atMost" in estimate else "a price not known yet"
    print(f"Reading them takes {estimate['pages']} calls and {price}; the limit is {MAX_CREDITS}.")

    gathered = await call(client, "gather_ads", filters=QUESTION, maxCredits=MAX_CREDITS)
    while gathered["stopped"] == "deadline":  # goes on where it stopped; nothing is paid twice
        gathered = await call(client, "gather_ads", filters=QUESTION, maxCredits=MAX_CREDITS)
    print(f"Read {gathered['read']} of {gathered['found']}, complete: {gathered['complete']}.")

    answer = await call(client, "query_ads", sql=BY_FORMAT)  # costs nothing, as often as you like
    for row in [answer["columns"], *answer["rows"]]:
        print("  " + " | ".join(str(cell) for cell in row))
    partial = answer["coverage"].get("partial", [])  # gatherings that stopped before their end
    print("The figures rest on all ads that match." if not partial else f"Not read to the end: {partial}")


async def main(url: str) -> str | None:
    """What went wrong, if anything did."""
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
        problem = str(first_of(errors))
    return problem


def first_of(error: BaseException) -> BaseException:
    """Tasks that run beside each other fail in groups."""
    return first_of(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:3000/mcp", help="address of the server")
    sys.exit(asyncio.run(main(parser.parse_args().url)))
