/**
 * From a trusted hash up to a height, over headers between: the tables of CometBFT 0.38.17's
 * light/client_test.go.
 */
import { describe, expect, it } from "@jest/globals";
import type { LightBlock } from "../../../../chain/consensus/light.js";
import {
  HOUR_NS,
  lightBlock,
  lightChain,
  lightKeys,
  lightSet,
  MINUTE_NS,
  START_NS,
} from "../../../helpers/chains/light-blocks.js";
import {
  at,
  block2,
  block3,
  chainOf,
  client,
  codeOf,
  good,
  h1,
  h2,
  h3,
  keys,
  signal,
  twice,
  validators,
} from "./light-clients.js";

const freshKeys = lightKeys(4, 50);
const fresh = lightSet(freshKeys, 10n, 1n);
const mixedKeys = [...keys, ...lightKeys(3, 80)];
const mixed = lightSet(mixedKeys, 10n, 1n);

/** TestClient_SkippingVerification, and the rows of SequentialVerification that skip nothing. */
const SKIPPING: readonly (readonly [name: string, blocks: readonly LightBlock[], code: string])[] =
  [
    ["good", [h1, h3], ""],
    [
      "two thirds of the validators change",
      [h1, block3({ keys: mixedKeys, validators: mixed })],
      "",
    ],
    [
      "all of them change at height 2",
      [h1, block2({ nextValidators: fresh }), block3({ keys: freshKeys, validators: fresh })],
      "",
    ],
    [
      "the header in between has no signers",
      [
        h1,
        block2({ nextValidators: fresh, signers: [0, 0] }),
        block3({ keys: freshKeys, validators: fresh }),
      ],
      "LIGHT_INVALID",
    ],
    ["a third signed the last header", [h1, h2, block3({ signers: [3, 4] })], "LIGHT_INVALID"],
    ["other validators at height 3", [h1, h2, { ...h3, validators: fresh }], "LIGHT_INVALID"],
    ["other validators at height 1", [{ ...h1, validators: fresh }, h3], "LIGHT_INVALID"],
    [
      "another first header",
      [lightBlock({ keys, validators, height: 1, timeNs: START_NS + HOUR_NS })],
      "TRUST_HASH_MISMATCH",
    ],
    ["no first header", [], "SERVER_UNAVAILABLE"],
    ["no last header", [h1, h2], "SERVER_UNAVAILABLE"],
  ];

describe("upwards", () => {
  it.each(SKIPPING)("%s", async (_name, blocks, code) => {
    const verifying = client({ servers: twice(chainOf(blocks)) }).verify(3, signal);
    expect(await codeOf(verifying)).toBe(code);
  });

  it("reaches far by few headers where validators change", async () => {
    const long = lightChain(100, { validators: 6, change: 1 });
    const servers = twice(long);
    const nowNs = START_NS + 101n * MINUTE_NS;
    const light = client({ servers, trusted: at(long, 5), nowNs });
    expect(await light.verify(100, signal)).toBe(at(long, 100));
    const asked = servers[0]?.asked ?? [];
    expect(asked.length).toBeGreaterThan(10);
    expect(asked.length).toBeLessThan(90);
    expect(Math.min(...asked)).toBe(5);
    expect(new Set(asked).size).toBe(asked.length);
  });

  it("trusts nothing that is too old", async () => {
    const nowNs = START_NS + 4n * HOUR_NS;
    const verifying = client({ servers: twice(good), nowNs }).verify(3, signal);
    expect(await codeOf(verifying)).toBe("LIGHT_EXPIRED");
  });
});
