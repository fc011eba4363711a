/** Every endpoint of the published API on a real node, online and offline: requests and replies. */
import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { listedErrors } from "../../../sidecar/rosetta/errors.js";
import {
  createVolume,
  freeOffset,
  initVolume,
  type MeshContainer,
  startMeshContainer,
} from "../../helpers/mesh/mesh-container.js";
import { callMesh, recordConversation, type Sample } from "../../helpers/mesh/mesh-conversation.js";
import {
  createApiValidator,
  exampleRequest,
  ownApi,
  publishedApi,
} from "../../helpers/http/published-api.js";

const own = ownApi();
const published = publishedApi() ?? own;
const paths = Object.keys(published.paths);

/** Endpoints that answer 200 when they are asked rightly. */
const OFFLINE_PATHS = [
  "/network/list",
  "/network/options",
  "/construction/derive",
  "/construction/preprocess",
  "/construction/payloads",
  "/construction/combine",
  "/construction/parse",
  "/construction/hash",
];
const ONLINE_PATHS = [
  ...OFFLINE_PATHS,
  "/network/status",
  "/block",
  "/block/transaction",
  "/account/balance",
  "/construction/metadata",
  "/construction/submit",
];

const listed = new Map(listedErrors().map((error) => [error.code, error]));

/** The reply without what varies, as the list has it. */
function constantOf({ details: _details, ...constant }: Readonly<Record<string, unknown>>) {
  return constant;
}

function expectListed(about: unknown, reply: Readonly<Record<string, unknown>>): void {
  const entry = listed.get(Number(reply["code"]));
  expect({ about, error: constantOf(reply) }).toEqual({ about, error: entry });
}

describe("the sidecar beside the published API", () => {
  const volume = createVolume();
  const containers: MeshContainer[] = [];
  let samples: readonly Sample[] = [];
  let urls = { onlineUrl: "", offlineUrl: "" };

  beforeAll(async () => {
    const portOffset = await freeOffset(0);
    await initVolume(volume, portOffset);
    const shared = { home: volume, portOffset };
    const online = await startMeshContainer({ mode: "ONLINE", port: 8080 + portOffset, ...shared });
    containers.push(online);
    const offline = await startMeshContainer({
      mode: "OFFLINE",
      port: 8081 + portOffset,
      ...shared,
    });
    containers.push(offline);
    urls = { onlineUrl: online.url, offlineUrl: offline.url };
    samples = await recordConversation({ ...urls, home: volume });
  });

  afterAll(async () => {
    await Promise.all(containers.map((container) => container.stop()));
    rmSync(volume, { recursive: true, force: true });
  });

  it("covers every endpoint on both servers, and those that are served answer", () => {
    for (const server of ["online", "offline"] as const) {
      const asked = samples.filter((sample) => sample.server === server);
      expect(new Set(asked.map((sample) => sample.path))).toEqual(new Set(paths));
      const served = server === "online" ? ONLINE_PATHS : OFFLINE_PATHS;
      const failed = asked.filter(({ path, status }) => served.includes(path) && status !== 200);
      expect(failed).toEqual([]);
    }
  });

  it.each([
    ["Rosetta's published description", published],
    ["the project's own files", own],
  ])("says and hears only what is valid by %s", (_name, api) => {
    const validator = createApiValidator(api);
    for (const { server, path, request, status, reply } of samples) {
      const about = { server, path, request, reply };
      expect({ about, faults: validator.request(path, request) }).toEqual({ about, faults: [] });
      const faults = validator.response(path, status, reply);
      expect({ about, faults }).toEqual({ about, faults: [] });
    }
  });

  it("answers 200, or 500 with an error as it is listed", () => {
    for (const { server, path, request, status, reply } of samples) {
      const about = { server, path, request };
      expect({ about, status }).toEqual({ about, status: status === 200 ? 200 : 500 });
      if (status === 500) expectListed(about, reply);
    }
    const offline = samples.filter(({ server }) => server === "offline");
    const refused = offline.filter(({ path }) => !OFFLINE_PATHS.includes(path));
    expect(new Set(refused.map(({ reply }) => reply["message"]))).toEqual(
      new Set(["unavailable offline"]),
    );
  });

  it("answers the published examples, or refuses them with a listed error", async () => {
    const validator = createApiValidator(published);
    for (const path of paths) {
      const request = exampleRequest(published, path) as Readonly<Record<string, unknown>>;
      expect({ path, request, faults: validator.request(path, request) }).toEqual({
        path,
        request,
        faults: [],
      });
      for (const network_identifier of [request["network_identifier"], undefined]) {
        const body = network_identifier === undefined ? ours(request) : request;
        for (const url of [urls.onlineUrl, urls.offlineUrl]) {
          const { status, reply } = await callMesh(url, path, body);
          const about = { url, path, body };
          const faults = validator.response(path, status, reply);
          expect({ about, faults }).toEqual({ about, faults: [] });
          if (status !== 200) expectListed(about, reply);
        }
      }
    }
  });

  /** The example as it would be asked of this network. */
  function ours(request: Readonly<Record<string, unknown>>) {
    const network_identifier = { blockchain: "token", network: "testnet" };
    return "network_identifier" in request ? { ...request, network_identifier } : request;
  }
});
