"""The conversation of every client, with the official Python SDK: MCP_MODE auto, pin or legacy.

What to say stands in MCP_PLAN, as JSON: see Plan in ../plan.go. A step that is not in the plan is not taken.
"""

import asyncio
import json
import os
import re
import sys

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

PLAN = json.loads(os.environ["MCP_PLAN"])
MODE = os.environ["MCP_MODE"]


class Person:
    """What the user does when asked, and how often that was."""

    action = "cancel"
    asked = 0

    async def __call__(self, _context, params):
        self.asked += 1
        if self.action != "accept":
            return types.ElicitResult(action=self.action)
        plain = {"boolean": True, "integer": 1, "number": 1, "array": []}
        schema = params.requested_schema.get("properties", {})
        return types.ElicitResult(action="accept", content={n: plain.get(s.get("type"), (s.get("enum") or ["text"])[0]) for n, s in schema.items()})


def text(result) -> str:
    return "\n".join(getattr(c, "text", "") for c in result.content)


async def act(client, person, step, action, asked):
    person.action, person.asked = action, 0
    try:
        said = text(await client.call_tool(step["name"], step.get("arguments") or {}))
    except Exception as e:  # an error of the protocol is an answer too
        said = str(e)
    assert re.search(step["expect"], said), said
    assert person.asked == asked, f"asked {person.asked} times, want {asked}"


async def talk(client, person, modern):
    steps = []
    tools = (await client.list_tools()).tools
    assert any(t.name == PLAN["tool"]["name"] for t in tools), "the tool is not listed"
    steps.append(f"list: {len(tools)} tools")
    called = await client.call_tool(PLAN["tool"]["name"], PLAN["tool"].get("arguments") or {})
    assert not called.is_error and called.content, text(called)
    steps.append("call")
    for step in PLAN.get("calls") or []:
        said = text(await client.call_tool(step["name"], step.get("arguments") or {}))
        assert re.search(step["expect"], said), said
        steps.append(f"call {step['name']}")
    if uri := PLAN.get("resource"):
        contents = (await client.read_resource(uri)).contents
        assert contents and (getattr(contents[0], "text", None) or getattr(contents[0], "blob", None)), "the resource is empty"
        steps.append("read")
    if prompt := PLAN.get("prompt"):
        assert (await client.get_prompt(prompt["name"], prompt.get("arguments"))).messages, "the prompt is empty"
        steps.append("prompt")
    if complete := PLAN.get("complete"):
        kind = types.PromptReference if complete["ref"]["type"] == "ref/prompt" else types.ResourceTemplateReference
        values = (await client.complete(kind.model_validate(complete["ref"]), complete["argument"])).completion.values
        assert complete["expect"] in values, values
        steps.append("complete")
    if modern and PLAN.get("confirm"):
        await act(client, person, PLAN["confirm"], "accept", 1)
        steps.append("confirm")
    if modern and PLAN.get("decline"):
        await act(client, person, PLAN["decline"], "decline", 1)
        steps.append("decline")
    if not modern and PLAN.get("legacy"):
        await act(client, person, PLAN["legacy"], "accept", 0)
        steps.append("refused for want of a question")
    return steps


async def main():
    person = Person()
    headers = {"Authorization": f"Bearer {PLAN['token']}"} if PLAN.get("token") else {}
    mode = PLAN["version"] if MODE == "pin" else MODE
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(PLAN["url"], http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=person) as client:
            # Without this an auto client that fell back to initialize would look just as well.
            assert client.protocol_version == PLAN["version"], client.protocol_version
            modern = MODE != "legacy"
            steps = await talk(client, person, modern)
            print(json.dumps({"era": "modern" if modern else "legacy", "version": client.protocol_version, "steps": steps}))


def leaves(e):
    """The errors inside the groups that task groups make."""
    return [leaf for inner in e.exceptions for leaf in leaves(inner)] if isinstance(e, BaseExceptionGroup) else [e]


try:
    asyncio.run(main())
except Exception as e:
    sys.exit("\n".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves(e)))
