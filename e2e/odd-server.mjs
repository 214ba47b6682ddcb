// MCP servers that are unusual: what a status has of them is the truth.
//
//   node odd-server.mjs KIND
//
// slow and old speak on standard input and output; silent, guarded, newest and many by streamable HTTP on $MCP_PORT.

import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

const kind = process.argv.at(-1);
const tools = (count) => Array.from({ length: count }, (_, number) => ({ name: `tool-${number}`, inputSchema: { type: 'object' } }));
const PAGE = 500;

/** The result of a request. None if it has none. */
function result({ method, params }) {
  const serverInfo = { name: kind, version: '1' };
  const capabilities = { tools: {} };
  if (kind === 'newest') {
    if (method === 'server/discover')
      return { supportedVersions: ['2026-07-28'], capabilities, _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo } };
    return method === 'tools/list' ? { tools: tools(3) } : undefined;
  }
  const protocolVersion = kind === 'old' ? '2024-11-05' : params?.protocolVersion;
  if (method === 'initialize') return { protocolVersion, capabilities, serverInfo };
  if (method === 'ping') return {};
  if (method !== 'tools/list') return undefined;
  if (kind !== 'many') return { tools: tools(2) };
  const start = Number(params?.cursor ?? 0);
  const end = start + PAGE;
  return { tools: tools(5000).slice(start, end), nextCursor: end < 5000 ? String(end) : undefined };
}

function response(message) {
  const found = result(message);
  const error = { code: -32601, message: 'Method not found' };
  return JSON.stringify({ jsonrpc: '2.0', id: message.id, ...(found ? { result: found } : { error }) });
}

if (['slow', 'old'].includes(kind)) {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.id === undefined) return;
    setTimeout(() => process.stdout.write(`${response(message)}\n`), kind === 'slow' ? 5000 : 0);
  });
} else {
  createServer(async (request, answer) => {
    if (kind === 'silent') return;
    if (kind === 'guarded') return answer.writeHead(401).end();
    if (request.method !== 'POST') return answer.writeHead(405).end();
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const message = JSON.parse(Buffer.concat(pieces).toString());
    if (message.id === undefined) return answer.writeHead(202).end();
    answer.writeHead(200, { 'Content-Type': 'application/json' }).end(response(message));
  }).listen(Number(process.env.MCP_PORT));
}
