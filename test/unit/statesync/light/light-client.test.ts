/**
 * From a trusted hash to any height over servers that need not be trusted: tables of CometBFT
 * 0.38.17's light/client_test.go and detector_test.go, with the rule that every answer is compared.
 */
import { describe, expect, it, jest } from "@jest/globals";
import { COMMIT_FLAG } from "../../../../chain/consensus/commit.js";
import { hashConsensusHeader } from "../../../../chain/consensus/consensus-header.js";
import type { DuplicateVoteEvidence } from "../../../../chain/consensus/evidence.js";
import type { LightBlock } from "../../../../chain/consensus/light.js";
import { VOTE_TYPE } from "../../../../chain/consensus/vote.js";
import { parseAddress } from "../../../../chain/address.js";
import { verifySignature } from "../../../../chain/consensus/ed25519.js";
import { fetchBackfill } from "../../../../node/statesync/backfill.js";
import type { BlockExtras } from "../../../../node/statesync/light/light-json.js";
import { LightClient } from "../../../../node/statesync/light/light-client.js";
import type { LightProvider } from "../../../../node/statesync/light/light-rpc.js";
import { proveState } from "../../../../node/statesync/light/light-state.js";
import { followingSet } from "../../../../node/statesync/light/light-validators.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import {
  HOUR_NS,
  LIGHT_CHAIN_ID,
  lightBlock,
  lightChain,
  lightKeys,
  lightSet,
  MINUTE_NS,
  SECOND_NS,
  START_NS,
} from "../../../helpers/chains/light-blocks.js";
import { FakeLightServer, type LightBlocks } from "../../../helpers/chains/light-server.js";

const log = createLogger({ component: "light", level: "silent" });
const signal = new AbortController().signal;

const keys = lightKeys(4);
const validators = lightSet(keys, 20n, 10n);
const h1 = lightBlock({ keys, validators, height: 1, timeNs: START_NS });
const h2 = lightBlock({
  keys,
  validators: validators.advance(1),
  height: 2,
  timeNs: START_NS + HOUR_NS / 2n,
  header: { lastBlockId: h1.commit.blockId },
});
const h3 = lightBlock({
  keys,
  validators: validators.advance(1).advance(1),
  height: 3,
  timeNs: START_NS + HOUR_NS,
  header: { lastBlockId: h2.commit.blockId },
});
const good = chainOf([h1, h2, h3]);

function chainOf(blocks: readonly LightBlock[]): LightBlocks {
  return new Map(blocks.map((block) => [block.header.height, block]));
}

const dead = new FakeLightServer("dead", new Map());

interface Plan {
  readonly servers: readonly LightProvider[];
  readonly trusted?: LightBlock;
  readonly periodNs?: bigint;
  readonly nowNs?: bigint;
}

function client({ servers, trusted = h1, periodNs = 4n * HOUR_NS, nowNs }: Plan): LightClient {
  const nowMs = Number((nowNs ?? START_NS + 3n * HOUR_NS) / 1_000_000n);
  return new LightClient({
    providers: servers,
    chainId: LIGHT_CHAIN_ID,
    trust: {
      height: trusted.header.height,
      hash: hashConsensusHeader(trusted.header),
      periodNs,
    },
    verifySignature,
    clock: { nowMs: () => nowMs, monotonicMs: () => 0 },
    log,
  });
}

function twice(blocks: LightBlocks): FakeLightServer[] {
  return [new FakeLightServer("one", blocks), new FakeLightServer("two", blocks)];
}

function at(blocks: LightBlocks, height: number): LightBlock {
  const block = blocks.get(height);
  if (block === undefined) throw new Error(`no block ${height}`);
  return block;
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "",
    (error: unknown) => (error instanceof Error && "code" in error ? String(error.code) : "?"),
  );
}

const freshKeys = lightKeys(4, 50);
const fresh = lightSet(freshKeys, 10n, 1n);
const mixedKeys = [...keys, ...lightKeys(3, 80)];
const mixed = lightSet(mixedKeys, 10n, 1n);
const block2 = (part: Partial<Parameters<typeof lightBlock>[0]>) =>
  lightBlock({ keys, validators, height: 2, timeNs: START_NS + HOUR_NS, ...part });
const block3 = (part: Partial<Parameters<typeof lightBlock>[0]>) =>
  lightBlock({ keys, validators, height: 3, timeNs: START_NS + 2n * HOUR_NS, ...part });

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

describe("the backfill", () => {
  const chain = lightChain(400, { validators: 3, change: 0 });
  const options = (
    servers: readonly LightProvider[],
    maxAgeBlocks: number,
    ageMinutes: bigint,
  ) => ({
    providers: servers,
    window: { maxAgeBlocks, maxAgeNs: ageMinutes * MINUTE_NS },
    clock: { nowMs: () => 0, monotonicMs: () => 0 },
    log,
  });
  const lowest = async (top: number, maxAgeBlocks: number, ageMinutes: bigint) => {
    const parts = options(twice(chain), maxAgeBlocks, ageMinutes);
    const { headers } = await fetchBackfill(at(chain, top).header, parts, signal);
    expect(headers.map(({ height }) => height)).toEqual(
      Array.from({ length: headers.length }, (_, index) => top - 1 - index),
    );
    return headers.at(-1)?.height;
  };

  it("reaches back over the evidence's age in blocks and in time, and over 257 heights", async () => {
    expect(await lowest(399, 300, 1n)).toBe(98);
    expect(await lowest(399, 10, 310n)).toBe(88);
    expect(await lowest(399, 10, 1n)).toBe(142);
    expect(await lowest(200, 10, 1n)).toBe(1);
    expect(await lowest(1, 10, 1n)).toBeUndefined();
  });

  it("takes no header that is not of the chain", async () => {
    const header = { ...at(chain, 30).header, appHash: h1.header.dataHash };
    const wrong = new Map([...chain, [30, { ...at(chain, 30), header }]]);
    const fetching = fetchBackfill(at(chain, 50).header, options(twice(wrong), 1, 1n), signal);
    expect(await codeOf(fetching)).toBe("LIGHT_INVALID");
    const oneLies = [new FakeLightServer("liar", wrong), new FakeLightServer("honest", chain)];
    const found = await fetchBackfill(at(chain, 50).header, options(oneLies, 1, 1n), signal);
    expect(found.headers).toHaveLength(49);
  });

  it("has validators where they change, proven by the headers", async () => {
    const changing = lightChain(5, { validators: 3, change: 1 });
    const parts = options(twice(changing), 10, 1n);
    const { sets } = await fetchBackfill(at(changing, 5).header, parts, signal);
    expect(sets.map(({ height }) => height)).toEqual([4, 3, 2, 1]);
    for (const { height, validators: set } of sets) {
      expect(set.hash()).toBe(at(changing, height).header.validatorsHash);
    }
    const still = await fetchBackfill(at(chain, 50).header, options(twice(chain), 1, 1n), signal);
    expect(still.sets.map(({ height }) => height)).toEqual([49]);
    const wrong = new Map([...changing, [3, { ...at(changing, 3), validators }]]);
    const liars = options(twice(wrong), 10, 1n);
    expect(await codeOf(fetchBackfill(at(changing, 5).header, liars, signal))).toBe(
      "LIGHT_INVALID",
    );
    const oneLies = options([...twice(wrong), new FakeLightServer("honest", changing)], 10, 1n);
    const found = await fetchBackfill(at(changing, 5).header, oneLies, signal);
    expect(found.sets).toHaveLength(4);
  });

  it("asks again for validators that no server gave for a moment", async () => {
    const changing = lightChain(5, { validators: 3, change: 1 });
    const servers = twice(changing);
    for (const server of servers) server.busy.add(3);
    const { sets } = await fetchBackfill(at(changing, 5).header, options(servers, 10, 1n), signal);
    expect(sets.map(({ height }) => height)).toEqual([4, 3, 2, 1]);
    expect(servers.flatMap(({ busy }) => [...busy])).toEqual([]);
  });

  it("asks a busy server again, whatever another one gives in its place", async () => {
    const changing = lightChain(5, { validators: 3, change: 1 });
    const honest = new FakeLightServer("honest", changing);
    const liar = new FakeLightServer("liar", changing);
    honest.busy.add(3);
    const told = jest.spyOn(liar, "validators");
    told.mockImplementation(async (height) => at(changing, height === 3 ? 2 : height).validators);
    const asked = options([honest, liar], 10, 1n);
    const { sets } = await fetchBackfill(at(changing, 5).header, asked, signal);
    expect(sets.map(({ height }) => height)).toEqual([4, 3, 2, 1]);
    expect(told.mock.calls.map(([height]) => height)).toContain(3);
  });
});

describe("the backfill's evidence", () => {
  const vote = (round: number) => ({
    type: VOTE_TYPE.precommit,
    height: 2,
    round,
    blockId: undefined,
    timeNs: START_NS,
    validatorAddress: parseAddress(`0x${"11".repeat(20)}`),
    validatorIndex: 0,
    signature: new Uint8Array(64),
  });
  const piece = (round: number): DuplicateVoteEvidence => ({
    voteA: vote(round),
    voteB: vote(round),
    totalPower: 3n,
    validatorPower: 1n,
    timeNs: START_NS,
  });

  it("is that of the headers, from whichever server has it, and missed where none has", async () => {
    const told = piece(0);
    const chain = lightChain(5, { validators: 3, change: 0, evidence: new Map([[3, [told]]]) });
    const server = (name: string, evidence: readonly DuplicateVoteEvidence[]) => {
      const fake = new FakeLightServer(name, chain);
      fake.extras = { evidence };
      return fake;
    };
    const parts = (servers: readonly LightProvider[]) => ({
      providers: servers,
      window: { maxAgeBlocks: 10, maxAgeNs: MINUTE_NS },
      clock: { nowMs: () => 0, monotonicMs: () => 0 },
      log,
    });
    const found = (...servers: readonly LightProvider[]) =>
      fetchBackfill(at(chain, 5).header, parts(servers), signal);
    const liar = server("liar", [piece(1)]);
    expect((await found(liar, server("honest", [told]))).evidence).toEqual([told]);
    expect((await found(liar)).evidence).toEqual([]);
  });
});

describe("whose turn it is", () => {
  it("follows from the set before, also where validators come and go", () => {
    const chain = lightChain(6, { validators: 3, change: 1 });
    let before = at(chain, 1).validators;
    for (let height = 2; height <= 6; height++) {
      const next = followingSet(before, at(chain, height).validators);
      expect([height, next.proposer]).toEqual([height, at(chain, height).validators.proposer]);
      before = next;
    }
  });

  it("is not believed where it does not follow", () => {
    expect(() => followingSet(validators, validators)).toThrow(
      expect.objectContaining({ code: "LIGHT_INVALID" }),
    );
  });
});

describe("a state", () => {
  const chain = lightChain(9, { validators: 3, change: 1 });
  const clock = { nowMs: () => 0, monotonicMs: () => 0 };
  const window = { maxAgeBlocks: 1, maxAgeNs: 1n };
  const prove = (height: number, blocks: LightBlocks) => {
    const providers = twice(blocks);
    const light = client({
      servers: providers,
      trusted: at(blocks, 2),
      nowNs: START_NS + HOUR_NS,
    });
    return proveState(height, { light, providers }, signal);
  };

  it("is proven with what was decided before, at and after it", async () => {
    const state = await prove(7, chain);
    expect(state.header).toBe(at(chain, 7).header);
    expect(state.next).toBe(at(chain, 8).header);
    expect(state.blockId).toEqual(at(chain, 7).commit.blockId);
    expect(state.lastCommit).toBe(at(chain, 6).commit);
    const sets = [state.validators, state.nextValidators, state.afterNextValidators];
    for (const [index, set] of sets.entries()) {
      expect(set).toEqual(at(chain, 7 + index).validators);
      expect(set.proposer).toEqual(at(chain, 7 + index).validators.proposer);
    }
    const past = { providers: twice(chain), window, clock, log };
    const { headers } = await fetchBackfill(state.header, past, signal);
    expect(headers.map(({ height }) => height)).toEqual([6, 5, 4, 3, 2, 1]);
  });

  it("has the commit that was decided, not one that was seen early", async () => {
    const four = lightChain(9, { validators: 4, change: 0 });
    const providers = twice(four);
    const seen = at(four, 7);
    const signatures = seen.commit.signatures.with(3, { flag: COMMIT_FLAG.absent });
    const early = { ...seen, commit: { ...seen.commit, signatures } };
    for (const server of providers) server.early.set(7, early);
    const trusted = at(four, 2);
    const light = client({ servers: providers, trusted, nowNs: START_NS + HOUR_NS });
    const parts = { light, providers };
    expect((await proveState(7, parts, signal)).commit).toBe(seen.commit);
    const wrong = twice(new Map([...four, [7, early]]));
    const other = client({ servers: wrong, trusted, nowNs: START_NS + HOUR_NS });
    const proving = proveState(7, { ...parts, light: other, providers: wrong }, signal);
    expect(await codeOf(proving)).toBe("SERVER_ANSWER_INVALID");
    const moved = { ...seen, commit: { ...seen.commit, round: seen.commit.round + 1 } };
    const liars = twice(new Map([...four, [7, moved]]));
    for (const server of liars) server.early.set(7, early);
    const third = client({ servers: liars, trusted, nowNs: START_NS + HOUR_NS });
    const told = proveState(7, { ...parts, light: third, providers: liars }, signal);
    expect(await codeOf(told)).toBe("SERVER_ANSWER_INVALID");
  });

  it("waits for the two heights above it", async () => {
    expect(await codeOf(prove(8, chain))).toBe("SERVER_UNAVAILABLE");
  });

  it("takes no block that is not the decided one", async () => {
    const changes: readonly Partial<BlockExtras>[] = [
      { header: at(chain, 6).header },
      { lastCommit: at(chain, 5).commit },
      { lastCommit: { ...at(chain, 6).commit, signatures: [] } },
      // The header's hash covers the signatures of a commit, and nothing else of it.
      { lastCommit: { ...at(chain, 6).commit, round: 2 } },
      { lastCommit: { ...at(chain, 6).commit, height: 5 } },
      { lastCommit: { ...at(chain, 6).commit, blockId: at(chain, 5).commit.blockId } },
    ];
    for (const change of changes) {
      const providers = twice(chain);
      for (const server of providers) server.extras = change;
      const light = client({
        servers: providers,
        trusted: at(chain, 2),
        nowNs: START_NS + HOUR_NS,
      });
      const proving = proveState(7, { light, providers }, signal);
      expect(await codeOf(proving)).toBe("SERVER_ANSWER_INVALID");
    }
  });
});
