/**
 * Servers that need not be trusted: every answer is compared, and who differs is named; tables of
 * CometBFT 0.38.17's light/client_test.go and detector_test.go.
 */
import { describe, expect, it } from "@jest/globals";
import { COMMIT_FLAG } from "../../../../chain/consensus/commit.js";
import type { LightBlock } from "../../../../chain/consensus/light.js";
import { HOUR_NS, lightChain, MINUTE_NS, START_NS } from "../../../helpers/chains/light-blocks.js";
import { FakeLightServer, type LightBlocks } from "../../../helpers/chains/light-server.js";
import {
  at,
  block3,
  client,
  codeOf,
  good,
  h1,
  h2,
  h3,
  signal,
  twice,
  validators,
} from "./light-clients.js";

const dead = new FakeLightServer("dead", new Map());

describe("several servers", () => {
  const other = new Map([
    ...good,
    [3, block3({ timeNs: START_NS + HOUR_NS, header: { appHash: h1.header.dataHash } })],
  ]);
  const names = (work: Promise<unknown>) =>
    expect(work).rejects.toMatchObject({
      code: "LIGHT_DIVERGENCE",
      details: { servers: ["one", "liar"] },
      message: expect.stringContaining("one and liar"),
    });

  it("that differ in a header end it, signed or not", async () => {
    await names(
      client({
        servers: [new FakeLightServer("one", good), new FakeLightServer("liar", other)],
      }).verify(3, signal),
    );
    const unsigned = new Map([...good, [3, { ...at(other, 3), commit: h3.commit }]]);
    const servers = [
      new FakeLightServer("one", good),
      new FakeLightServer("two", good),
      new FakeLightServer("liar", unsigned),
    ];
    await names(client({ servers }).verify(3, signal));
  });

  it("that differ in a header on the way end it", async () => {
    const long = lightChain(20, { validators: 3, change: 1 });
    const forged = lightChain(20, { validators: 3, change: 1, firstKey: 500 });
    const mixedBlocks = new Map([...long].map(([height, block]) => [height, block]));
    for (let height = 2; height < 20; height++) mixedBlocks.set(height, at(forged, height));
    const servers = [new FakeLightServer("one", long), new FakeLightServer("liar", mixedBlocks)];
    const nowNs = START_NS + 21n * MINUTE_NS;
    await names(client({ servers, trusted: at(long, 1), nowNs }).verify(20, signal));
  });

  it("that differ in priorities end it (TestClientErrorsDifferentProposerPriorities)", async () => {
    const turned = new Map([...good, [2, { ...h2, validators }]]);
    const servers = [new FakeLightServer("one", good), new FakeLightServer("liar", turned)];
    await names(client({ servers }).verify(2, signal));
  });

  describe("of which one has false signatures beside the right header", () => {
    const long = lightChain(20, { validators: 3, change: 1 });
    const nowNs = START_NS + 21n * MINUTE_NS;
    /** The chain with altered signatures at some heights. */
    const falsified = (...heights: readonly number[]) => {
      const altered = heights.map((height): readonly [number, LightBlock] => {
        const block = at(long, height);
        const signatures = block.commit.signatures.map((entry) => {
          if (entry.flag !== COMMIT_FLAG.commit) throw new Error("it has not signed");
          return { ...entry, signature: Uint8Array.from(entry.signature, (byte) => byte ^ 1) };
        });
        return [height, { ...block, commit: { ...block.commit, signatures } }];
      });
      return new Map([...long, ...altered]);
    };
    const plan = (trusted: number, ...blocks: readonly LightBlocks[]) => ({
      servers: blocks.map((one, index) => new FakeLightServer(`server ${index}`, one)),
      trusted: at(long, trusted),
      nowNs,
    });

    it("are believed by the commit of another, upwards and on the way", async () => {
      const every = Array.from({ length: 20 }, (_, index) => index + 1);
      for (const heights of [[20], every]) {
        const light = client(plan(1, falsified(...heights), long));
        expect(await light.verify(20, signal)).toBe(at(long, 20));
      }
    });

    it("are believed at the trusted height, and below it", async () => {
      const light = client(plan(18, falsified(4, 18), long));
      expect(await light.verify(4, signal)).toBe(at(long, 4));
    });

    it("go on over headers between where the right commit is only too weak", async () => {
      // One of three validators is left after two heights, and a third is not enough.
      for (const blocks of [
        [falsified(3), long],
        [long, falsified(3)],
      ]) {
        const parts = plan(1, ...blocks);
        expect(await client(parts).verify(3, signal)).toBe(at(long, 3));
        expect(parts.servers.map(({ asked }) => asked)).toEqual([
          [1, 3, 2],
          [1, 3, 2],
        ]);
      }
    });

    it("are named where none has a right one", async () => {
      for (const [trusted, height, wrongAt] of [
        [1, 20, 20],
        [18, 4, 4],
        [20, 3, 20],
      ] as const) {
        const wrong = falsified(wrongAt);
        const verifying = client(plan(trusted, wrong, wrong)).verify(height, signal);
        await expect(verifying).rejects.toMatchObject({
          code: "LIGHT_INVALID",
          message: expect.stringMatching(/wrong signature .*server 1/),
          details: { server: "server 1", height: wrongAt },
        });
      }
    });
  });

  it("may be silent, but not all but one", async () => {
    const [one, two] = twice(good);
    if (one === undefined || two === undefined) throw new Error("no server");
    expect(await client({ servers: [dead, one, two] }).verify(3, signal)).toBe(h3);
    expect(await codeOf(client({ servers: [dead, one] }).verify(3, signal))).toBe(
      "SERVER_UNAVAILABLE",
    );
  });
});
