// @ts-check
// Requests to the console's own API.

import { authorization, keep } from "./token.js";

/**
 * @typedef {{kind: string, namespace: string, name: string}} Ref
 * @typedef {{perSecond: number, errorsPerSecond: number, p50: number | null, p99: number | null}} Traffic
 * @typedef {Ref & {phase: string, message: string, since: string | null, url: string, transport: string,
 *   tools: number | null, group: string, traffic: Traffic | null}} Summary
 * @typedef {{type: string, status: string, reason: string, message: string, lastTransitionTime: string}} Condition
 * @typedef {{field: string, value: unknown, origin: string, from: string}} Setting
 * @typedef {{time: string, type: string, reason: string, message: string, object: string, count: number}} Happening
 * @typedef {{name: string, phase: string, message: string, url: string, tools: number | null,
 *   offers: {name: string, originalName: string}[] | null, hidden: string[]}} Backend
 * @typedef {{name: string, title: string, readOnly: boolean | null, destructive: boolean | null, digest: string}} Reported
 * @typedef {Ref & {id: number, time: string, method: string, target: string, caller: string, status: number | null,
 *   error: number | null, failed: boolean, ms: number, decidedBy: string}} Call
 * @typedef {{user: string, provider: string, account: string, since: string | null, until: string | null,
 *   renewed: boolean}} Connection
 * @typedef {{available: boolean, total: number, shown: Connection[]}} Connections
 * @typedef {Summary & {conditions: Condition[], manifest: unknown, configuration: Setting[],
 *   objects?: {kind: string, name: string, state: string}[], seesEvents: boolean, events: Happening[],
 *   restarts: {sentence: string, lastLine: string}[], backends: Backend[],
 *   reported: Reported[] | null, seesCalls: boolean, calls: Omit<Call, keyof Ref>[],
 *   connections: Connections | null, links: Link[]}} Detail
 * @typedef {{title: string, url: string}} Link
 * @typedef {Ref & {mayList: boolean, mayEnd: boolean}} AuthServer a server with an authorization server
 * @typedef {{id: string, user: string, name: string, email: string, client: string, clientName: string,
 *   since: string | null, until: string | null}} UserSession
 * @typedef {{id: string, name: string, redirectUris: string[], public: boolean}} Client
 * @typedef {{session?: string, user?: string, client?: string}} Selection
 * @typedef {{mode: string, user: string, version: string, links: Link[]}} Session
 */

/** Every request that changes something or goes to a server has it: no page of another origin can send it, and no address. */
export const MARK = { "X-Skep-Console": "1" };

export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {string} mode of a console that wants a sign-in: local, cluster, or empty
   * @param {string} provider the host where users can log in, if there is one
   */
  constructor(status, message, mode, provider) {
    super(message);
    this.status = status;
    this.mode = mode;
    this.provider = provider;
  }
}

/** A request that got no response. */
export class Unreachable extends Error {}

/**
 * @param {unknown} error
 * @returns {never}
 */
export function unreachable(error) {
  throw new Unreachable(error instanceof Error ? error.message : String(error));
}

/**
 * @param {string} path
 * @param {{method?: string, headers?: Record<string, string>, body?: string}} [init]
 * @returns {Promise<any>}
 */
async function request(path, init) {
  const headers = { ...authorization(), ...init?.headers };
  const response = await fetch(path, { ...init, headers }).catch(unreachable);
  if (!response.ok) throw await failure(response);
  return response.status === 204 ? {} : response.json();
}

/** @param {Response} response */
export async function failure(response) {
  const body = await response.json().catch(() => ({}));
  const message = body.error || `the console responded with ${response.status}`;
  return new ApiError(response.status, message, body.mode || "", body.provider || "");
}

/** @returns {Promise<Session>} */
export const session = () => request("/api/session");

/** @param {string} token */
export async function signIn(token) {
  const { session } = await request("/api/session", {
    method: "POST",
    headers: { ...MARK, "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
  // Elsewhere the console has set a cookie.
  if (session) keep(session);
}

/** Begins a login at the provider.
 * @returns {Promise<string>} where it goes on */
export const logIn = async () => (await request("/api/login", { method: "POST", headers: MARK })).location;

export const signOut = () => request("/api/session", { method: "DELETE", headers: MARK });

/** @returns {Promise<Summary[]>} */
export const objects = async () => (await request("/api/objects")).objects;

/**
 * @param {Ref} ref
 * @returns {Promise<Detail>}
 */
export const detail = (ref) => request(`/api/objects/${path(ref)}`);

/** @returns {Promise<{isAvailable: boolean, servers: AuthServer[]}>} */
export const authServers = () => request("/api/sessions");

/**
 * @param {Ref} ref
 * @param {Selection} selection
 * @returns {Promise<{entries: UserSession[], more: boolean}>}
 */
export const userSessions = (ref, selection) => request(`/api/sessions/${path(ref)}${query(selection)}`);

/**
 * @param {Ref} ref
 * @param {Selection} selection
 * @returns {Promise<{ended: number}>}
 */
export const endSessions = (ref, selection) =>
  request(`/api/sessions/${path(ref)}${query(selection)}`, { method: "DELETE", headers: MARK });

/**
 * @param {Ref} ref
 * @returns {Promise<{entries: Client[], more: boolean}>}
 */
export const clients = (ref) => request(`/api/clients/${path(ref)}`);

/**
 * @param {Ref} ref
 * @param {string} client
 * @returns {Promise<{ended: number}>}
 */
export const forgetClient = (ref, client) =>
  request(`/api/clients/${path(ref)}${query({ client })}`, { method: "DELETE", headers: MARK });

/** @param {Selection} selection */
function query(selection) {
  const given = Object.entries(selection).filter(([, value]) => value);
  return given.length > 0 ? `?${new URLSearchParams(given)}` : "";
}

/** @param {Ref} ref */
export const endpoint = (ref) => `/api/mcp/${path(ref)}`;

/** @param {Ref} ref */
export const path = (ref) => [ref.kind, ref.namespace, ref.name].map(encodeURIComponent).join("/");

/** @param {Ref} ref */
export const key = (ref) => `${ref.kind}/${ref.namespace}/${ref.name}`;
