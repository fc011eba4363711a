/** From a trusted hash down by the hashes of headers, as CometBFT 0.38.17's light/client_test.go has it. */
import { describe, expect, it } from "@jest/globals";
import { proveState } from "../../../../node/statesync/light/light-state.js";
import {
  HOUR_NS,
  lightBlock,
  lightChain,
  lightKeys,
  MINUTE_NS,
  SECOND_NS,
  START_NS,
} from "../../../helpers/chains/light-blocks.js";
import { FakeLightServer } from "../../../helpers/chains/light-server.js";
import {
  at,
  block2,
  client,
  codeOf,
  good,
  h1,
  h3,
  type Plan,
  signal,
  twice,
} from "./light-clients.js";

describe("downwards (TestClient_BackwardsVerification)", () => {
  const chain = lightChain(30, { validators: 3, change: 0 });
  const plan = (nowNs: bigint): Plan => ({
    servers: twice(chain),
    trusted: at(chain, 26),
    periodNs: 4n * MINUTE_NS,
    nowNs,
  });

  it("follows hashes, over pages, also to what is itself expired", async () => {
    const light = client(plan(START_NS + 28n * MINUTE_NS));
    for (const height of [25, 3, 1]) {
      expect(await light.verify(height, signal)).toBe(at(chain, height));
    }
  });

  it("goes down to what is above one that has expired, too", async () => {
    const light = client(plan(START_NS + 28n * MINUTE_NS));
    for (const height of [3, 4, 5, 2]) {
      expect(await light.verify(height, signal)).toBe(at(chain, height));
    }
  });

  it("goes that way once for all that is proven of a height", async () => {
    const servers = twice(chain);
    const light = client({ ...plan(START_NS + 28n * MINUTE_NS), servers });
    const { header } = await proveState(3, { light, providers: servers }, signal);
    expect(header).toBe(at(chain, 3).header);
    // A page of 20, the rest of the way, and a header for each of the other three.
    expect(servers[0]?.pages).toEqual([25, 5, 4, 3, 2]);
  });

  it("takes no block beside the chain, whoever signed it", async () => {
    const beside = lightBlock({
      keys: lightKeys(3),
      validators: at(chain, 20).validators,
      height: 20,
      timeNs: at(chain, 20).header.timeNs,
    });
    const parts = plan(START_NS + 28n * MINUTE_NS);
    for (const server of parts.servers) {
      if (server instanceof FakeLightServer) server.early.set(20, beside);
    }
    const light = client(parts);
    expect(await codeOf(light.verify(20, signal))).toBe("LIGHT_INVALID");
    expect(await light.verify(20, signal)).toBe(at(chain, 20));
  });

  it("follows those of a server that has them, beside one that makes them up", async () => {
    const header = { ...at(chain, 9).header, appHash: h1.header.dataHash };
    const wrong = new Map([...chain, [9, { ...at(chain, 9), header }]]);
    const liar = new FakeLightServer("liar", wrong);
    const servers = [liar, new FakeLightServer("honest", chain)];
    const light = client({ ...plan(START_NS + 28n * MINUTE_NS), servers });
    expect(await light.verify(3, signal)).toBe(at(chain, 3));
  });

  it("starts from nothing that is too old", async () => {
    const verifying = client(plan(START_NS + 30n * MINUTE_NS)).verify(25, signal);
    expect(await codeOf(verifying)).toBe("LIGHT_EXPIRED");
  });

  it.each([
    ["of another height", { height: 1 }],
    ["with another hash", { appHash: h1.header.dataHash }],
  ])("refuses a header %s", async (_name, header) => {
    const wrong = block2({ timeNs: START_NS + HOUR_NS / 2n, header });
    const servers = twice(new Map([...good, [2, wrong]]));
    const light = client({ servers, trusted: h3, nowNs: START_NS + HOUR_NS + SECOND_NS });
    expect(await codeOf(light.verify(2, signal))).toBe("LIGHT_INVALID");
  });
});
