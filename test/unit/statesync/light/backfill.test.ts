/** Headers, validators and evidence below a proven header, as far back as evidence counts. */
import { describe, expect, it, jest } from "@jest/globals";
import type { DuplicateVoteEvidence } from "../../../../chain/consensus/evidence.js";
import { VOTE_TYPE } from "../../../../chain/consensus/vote.js";
import { parseAddress } from "../../../../chain/address.js";
import { fetchBackfill } from "../../../../node/statesync/backfill.js";
import type { LightProvider } from "../../../../node/statesync/light/light-rpc.js";
import { lightChain, MINUTE_NS, START_NS } from "../../../helpers/chains/light-blocks.js";
import { FakeLightServer } from "../../../helpers/chains/light-server.js";
import { at, codeOf, h1, log, signal, twice, validators } from "./light-clients.js";

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
