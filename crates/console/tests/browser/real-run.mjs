// `skep run` with the reference server of MCP, and its console.

import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Happenings } from "./appears.mjs";

/** The manifest of a server that this command line runs. */
export const server = (name, command) => `---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPServer
metadata:
  name: ${name}
  annotations:
    skep.dev/local-command: ${JSON.stringify(command)}
spec:
  image: example.com/${name}:1
  transport: stdio
`;

/** The reference server, which has every feature of MCP. */
export const everything = () => server("everything", `node ${process.env.SKEP_EVERYTHING} stdio`);

/** Starts `skep run`, and returns the address of its console. */
export async function startRun(manifests) {
  const folder = await mkdtemp(join(tmpdir(), "console-"));
  const file = join(folder, "servers.yaml");
  await writeFile(file, manifests);
  const env = { ...process.env, XDG_STATE_HOME: folder };
  const process_ = spawn(process.env.SKEP, ["run", "-f", file], { env, stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise((resolve) => process_.on("exit", resolve));
  // Each line is printed when something happens.
  const [lines, events] = [[], new Happenings()];
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: process_.stdout }).on("line", (line) => {
      lines.push(line);
      events.add(Date.now(), line);
      const printed = /^Console: (http\S+)$/.exec(line);
      if (printed) resolve(printed[1]);
    });
    ended.then(() => reject(new Error(`skep run ended: ${lines.join("\n")}`)));
  });
  return {
    url,
    /** The lines that it prints. */
    events,
    /** The address of a server for MCP clients. */
    address: (name) => lines.map((line) => line.split(/\s+/)).find(([first, address]) => first === name && address?.startsWith("http"))?.[1],
    /** Replaces the manifests. */
    write: (text) => writeFile(file, text),
    async stop() {
      process_.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true });
    },
  };
}
