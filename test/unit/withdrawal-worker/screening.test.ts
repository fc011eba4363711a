/** Asking a screening service that answers late or never: what waits for it holds up nothing else. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { toWithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { createScreener, type Screener } from "../../../withdrawal-worker/lane/slots/screening.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import { PAYEE } from "./signers/intents.js";

const { signal } = new AbortController();

let service: Server;
/** Whom the service was asked about, by customer. */
let asked: string[];
/** Questions that nobody waits for any more. */
let givenUp: number;
/** Whose question it leaves open. */
let isLeftOpen: (customerId: string) => boolean;
/** What it says about a withdrawal. */
let answerTo: (withdrawalId: string) => string;
/** Answers those that it has left open. */
let answerLate: (() => void)[];
let screening: { url: string; timeoutMs: number; reviewApprovals: number };
const clock = { ms: 0, nowMs: () => clock.ms, monotonicMs: () => clock.ms };

async function openService(): Promise<void> {
  asked = [];
  givenUp = 0;
  isLeftOpen = () => true;
  answerTo = () => `{"decision":"allow"}`;
  answerLate = [];
  service = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { withdrawalId, customerId } = JSON.parse(Buffer.concat(chunks).toString());
      asked.push(customerId);
      response.once("close", () => {
        if (!response.writableEnded) givenUp += 1;
      });
      const answer = () => response.end(answerTo(withdrawalId));
      if (isLeftOpen(customerId)) answerLate.push(answer);
      else answer();
    });
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  const { port } = service.address() as AddressInfo;
  screening = { url: `http://127.0.0.1:${port}/`, timeoutMs: 1_000, reviewApprovals: 1 };
}

async function closeService(): Promise<void> {
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
}

beforeEach(openService);
afterEach(closeService);

const requests = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    id: toWithdrawalId(`wd_${index}`),
    customerId: `c${index}`,
    asset: "TOKEN",
    contract: undefined,
    destination: PAYEE,
    amountUnits: 1n,
    waitedMs: 0,
    isToOwnWallet: false,
  }));

/**
 * Asks round after round until so many have their answers: on a busy machine one round may be over
 * before. Who is answered is asked about no more.
 */
async function answered(
  screener: Screener,
  which: typeof screening,
  { of, count }: { readonly of: number; readonly count: number },
): Promise<ReadonlySet<string>> {
  const known = new Set<string>();
  const isDone = async () => {
    const waiting = requests(of).filter(({ id }) => !known.has(id));
    for (const { withdrawalId } of await screener.ask(which, waiting, { signal })) {
      known.add(withdrawalId);
    }
    // What rests after a round without any answer is asked again.
    if (known.size < count) clock.ms += which.timeoutMs;
    return known.size >= count;
  };
  await until(isDone, { timeoutMs: 60_000, what: `${count} answers` });
  return known;
}

it("is waited for once, however many are to be asked about, and then left alone as long", async () => {
  let screener = createScreener(silentLog, clock);
  // A busy machine may give up some before they are heard: then others, of another service.
  const areHeard = async () => {
    screener.close();
    await closeService();
    await openService();
    screener = createScreener(silentLog, clock);
    expect(await screener.ask(screening, requests(64), { signal })).toEqual([]);
    return asked.length >= 8;
  };
  try {
    await until(areHeard, { timeoutMs: 60_000, what: "as many are heard as are asked at once" });
    await until(() => givenUp >= 8, { timeoutMs: 10_000, what: "all are given up" });
    // All at once; none is begun behind the first that had no answer in time.
    expect(asked).toHaveLength(8);
    isLeftOpen = () => false;
    clock.ms += 999;
    expect(await screener.ask(screening, requests(64), { signal })).toEqual([]);
    expect(asked).toHaveLength(8);
    clock.ms += 1;
    expect((await answered(screener, screening, { of: 64, count: 64 })).size).toBe(64);
  } finally {
    screener.close();
  }
});

it("is asked at once where the policy names another one", async () => {
  const screener = createScreener(silentLog, clock);
  try {
    expect(await screener.ask(screening, requests(1), { signal })).toEqual([]);
    isLeftOpen = () => false;
    const other = { ...screening, url: `${screening.url}other` };
    expect((await answered(screener, other, { of: 1, count: 1 })).size).toBe(1);
  } finally {
    screener.close();
  }
});

it("answers about all others where it leaves one question open", async () => {
  isLeftOpen = (customerId) => customerId === "c0";
  const screener = createScreener(silentLog, clock);
  try {
    for (let round = 0; round < 2; round += 1) {
      const known = await answered(screener, screening, { of: 20, count: 19 });
      expect([known.size, known.has("wd_0")]).toEqual([19, false]);
    }
  } finally {
    screener.close();
  }
});

it("is waited for a moment, and what it answers later is there when it is asked for again", async () => {
  isLeftOpen = (customerId) => customerId === "c0";
  const screener = createScreener(silentLog, clock);
  const patient = { ...screening, timeoutMs: 60_000 };
  try {
    expect((await answered(screener, patient, { of: 20, count: 19 })).has("wd_0")).toBe(false);
    expect(await screener.ask(patient, requests(1), { signal })).toEqual([]);
    expect(asked.filter((customerId) => customerId === "c0")).toHaveLength(1);
    for (const answer of answerLate) answer();
    const isThere = async () => (await screener.ask(patient, requests(1), { signal })).length === 1;
    await until(isThere, { timeoutMs: 10_000, what: "the late answer" });
    expect(asked.filter((customerId) => customerId === "c0")).toHaveLength(1);
  } finally {
    screener.close();
  }
});

it("is asked again where its answer names another withdrawal", async () => {
  isLeftOpen = () => false;
  answerTo = () => `{"withdrawalId":"wd_0","decision":"allow"}`;
  const screener = createScreener(silentLog, clock);
  try {
    expect([...(await answered(screener, screening, { of: 3, count: 1 }))]).toEqual(["wd_0"]);
    expect(asked).toContain("c2");
    answerTo = (withdrawalId) => JSON.stringify({ withdrawalId, decision: "allow" });
    expect((await answered(screener, screening, { of: 3, count: 3 })).size).toBe(3);
  } finally {
    screener.close();
  }
});

it("is asked again where its answer says two things", async () => {
  isLeftOpen = () => false;
  answerTo = (withdrawalId) =>
    withdrawalId === "wd_1"
      ? `{"decision":"deny","decision":"allow"}`
      : `{"decision":"allow","reference":"\\"decision\\":"}`;
  const screener = createScreener(silentLog, clock);
  try {
    const first = await answered(screener, screening, { of: 3, count: 2 });
    expect([...first].toSorted()).toEqual(["wd_0", "wd_2"]);
    answerTo = (withdrawalId) => JSON.stringify({ withdrawalId, decision: "deny" });
    expect((await answered(screener, screening, { of: 3, count: 3 })).size).toBe(3);
  } finally {
    screener.close();
  }
});

/** Asks round after round, in each of which what was asked before has had its time. */
async function askRounds(
  screener: Screener,
  which: typeof screening,
  { waiting, rounds }: { readonly waiting: ReturnType<typeof requests>; readonly rounds: number },
): Promise<ReadonlySet<string>> {
  const known = new Set<string>();
  for (let round = 0; round < rounds; round += 1) {
    const open = waiting.filter(({ id }) => !known.has(id));
    for (const { withdrawalId } of await screener.ask(which, open, { signal })) {
      known.add(withdrawalId);
    }
    clock.ms += which.timeoutMs;
  }
  return known;
}

it("asks about who stands behind more open questions than it has at once", async () => {
  isLeftOpen = (customerId) => customerId !== "c9";
  const screener = createScreener(silentLog, clock);
  try {
    const known = await askRounds(screener, screening, { waiting: requests(10), rounds: 4 });
    expect([...known]).toEqual(["wd_9"]);
  } finally {
    screener.close();
  }
});

it("asks about who stands behind more refused questions than one round has", async () => {
  isLeftOpen = () => false;
  answerTo = (id) => (id === "wd_70" ? `{"decision":"allow"}` : `{"decision":"what?"}`);
  const screener = createScreener(silentLog, clock);
  try {
    const known = await askRounds(screener, screening, { waiting: requests(71), rounds: 2 });
    expect([...known]).toEqual(["wd_70"]);
  } finally {
    screener.close();
  }
});

it("keeps a place from one customer's questions, however long each is left open", async () => {
  const own = requests(40).map((request) => ({ ...request, customerId: "many" }));
  const [other] = requests(41).slice(40);
  if (other === undefined) throw new Error("no request");
  isLeftOpen = (customerId) => customerId === "many";
  const screener = createScreener(silentLog, clock);
  const patient = { ...screening, timeoutMs: 60_000 };
  try {
    expect(await screener.ask(patient, own, { signal })).toEqual([]);
    expect(asked.length).toBeLessThan(8);
    const ids = async () => {
      const answers = await screener.ask(patient, [...own, other], { signal });
      return answers.map(({ withdrawalId }) => withdrawalId);
    };
    expect(await ids()).toEqual([other.id]);
  } finally {
    screener.close();
  }
});

it("keeps a place for who had no answer once, beside another customer's open questions", async () => {
  const [other, ...own] = requests(41);
  if (other === undefined) throw new Error("no request");
  const many = own.map((request) => ({ ...request, customerId: "many" }));
  isLeftOpen = (customerId) => customerId === "many";
  answerTo = () => `{"decision":"what?"}`;
  const screener = createScreener(silentLog, clock);
  const patient = { ...screening, timeoutMs: 60_000 };
  try {
    await askRounds(screener, patient, { waiting: [other], rounds: 1 });
    answerTo = () => `{"decision":"allow"}`;
    const known = await askRounds(screener, patient, { waiting: [...many, other], rounds: 2 });
    expect([...known]).toEqual([other.id]);
  } finally {
    screener.close();
  }
});

it("has turns of the customers also among those who had no answer before", async () => {
  const [other, ...own] = requests(41);
  if (other === undefined) throw new Error("no request");
  const waiting = [...own.map((request) => ({ ...request, customerId: "many" })), other];
  isLeftOpen = () => false;
  answerTo = () => `{"decision":"what?"}`;
  const screener = createScreener(silentLog, clock);
  const patient = { ...screening, timeoutMs: 60_000 };
  try {
    await askRounds(screener, patient, { waiting, rounds: 1 });
    expect(new Set(asked).size).toBe(2);
    isLeftOpen = (customerId) => customerId === "many";
    answerTo = () => `{"decision":"allow"}`;
    const known = await askRounds(screener, patient, { waiting, rounds: 2 });
    expect([...known]).toEqual([other.id]);
  } finally {
    screener.close();
  }
});

it("does not wait again for what was left open before", async () => {
  const screener = createScreener(silentLog, clock);
  try {
    await askRounds(screener, screening, { waiting: requests(1), rounds: 1 });
    expect(asked).toHaveLength(1);
    clock.ms += 60_000;
    const [again, first] = requests(2).map(async (request) => {
      await screener.ask(screening, [request], { signal });
      return request.id;
    });
    expect(await Promise.race([first, again])).toBe("wd_0");
    await first;
    expect(asked).toEqual(["c0", "c0", "c1"]);
  } finally {
    screener.close();
  }
});

it("is waited for as ever where it answers what it had refused before", async () => {
  isLeftOpen = () => false;
  answerTo = () => `{"decision":"what?"}`;
  const screener = createScreener(silentLog, clock);
  const patient = { ...screening, timeoutMs: 60_000 };
  const waiting = requests(60);
  try {
    await askRounds(screener, patient, { waiting, rounds: 1 });
    answerTo = () => `{"decision":"allow"}`;
    isLeftOpen = () => {
      setTimeout(() => answerLate.shift()?.(), 300);
      return true;
    };
    const known = new Set<string>();
    const areMany = async () => {
      const open = waiting.filter(({ id }) => !known.has(id));
      expect(open).not.toEqual([]);
      const answers = await screener.ask(patient, open, { signal });
      for (const { withdrawalId } of answers) known.add(withdrawalId);
      return answers.length > 5;
    };
    await until(areMany, {
      timeoutMs: 60_000,
      what: "more answers than it is asked at once again",
    });
  } finally {
    screener.close();
  }
});

it("asks about one again after pauses that grow to a minute, and says so in few lines", async () => {
  isLeftOpen = () => false;
  answerTo = () => `{"decision":"what?"}`;
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({
    component: "test",
    level: "warn",
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const screener = createScreener(log, clock);
  const askedAtMs: number[] = [];
  const beganMs = clock.ms;
  try {
    for (; clock.ms - beganMs < 250_000; clock.ms += 1_000) {
      const before = asked.length;
      expect(await screener.ask(screening, requests(1), { signal })).toEqual([]);
      if (asked.length > before) askedAtMs.push(clock.ms - beganMs);
    }
  } finally {
    screener.close();
  }
  const pauses = askedAtMs.map((atMs, index) => atMs - (askedAtMs[index - 1] ?? 0)).slice(1);
  expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  expect(lines[0]).toMatchObject({ id: "wd_0", times: 1, reason: expect.any(String) });
  const told = lines.reduce((sum, { times }) => sum + Number(times), 0);
  expect([lines.length, told]).toEqual([7, 10]);
});
