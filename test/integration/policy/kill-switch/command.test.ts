/** `causeway killswitch`: both places that it sets, the home's file and the ledger, and who may lower what. */
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { runDoctor } from "../../../../cli/commands/doctor.js";
import {
  runLiftSwitch,
  runSetSwitch,
  runShowSwitch,
} from "../../../../cli/commands/policy/kill-switch.js";
import type { LedgerCommand } from "../../../../cli/ledger/ledger-tools.js";
import { killSwitchPath } from "../../../../ledger/policy/policy-paths.js";
import { readKillSwitch, setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import {
  encodeKillSwitch,
  readKillSwitchFile,
} from "../../../../ledger/kill-switch/kill-switch-file.js";
import type { KillSwitchLevel } from "../../../../ledger/kill-switch/kill-switch-level.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import type { Sql, SqlDatabase } from "../../../../runtime/sql/sql.js";
import { createPolicyRoutes } from "../../../../withdrawal-worker/api/policy-routes.js";
import {
  createKillSwitch,
  ensureKillSwitchFile,
  HomeSwitch,
} from "../../../../withdrawal-worker/kill-switch.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { House } from "../../../helpers/exchange/house.js";
import { DOWN, makeHome, typedIn } from "../typed-home.js";

let house: House;
let home: string;
let printed: string[];

beforeAll(async () => {
  house = await House.withAlice(1_000_000n);
});

afterAll(async () => {
  await house.close();
});

beforeEach(() => {
  home = makeHome();
  printed = [];
});

const command = (url = house.ledger.url) => typedIn(home, url, (text) => void printed.push(text));

const owner = () => command(house.ledger.owner.url);

/** Read-only, as the operator's home in a container: a name beside the switch's file would be too long. */
function readOnlyHome(base: string): string {
  let deep = base;
  while (deep.length < 4_030) deep = join(deep, "d".repeat(Math.min(200, 4_040 - deep.length)));
  cpSync(join(base, "config"), join(deep, "config"), { recursive: true });
  return deep;
}

describe("causeway killswitch", () => {
  const terms = { reason: "drill", operator: "ann" };

  it("sets both places, shows them, and lifts both", async () => {
    expect(await runShowSwitch(owner())).toBe(1);
    expect(printed.join()).toContain("cannot be read");
    expect(await runSetSwitch(owner(), { ...terms, level: "stop-sign" })).toBe(0);
    expect(await readKillSwitch(house.database)).toMatchObject({ level: "stop-sign", by: "ann" });
    expect(JSON.parse(readFileSync(killSwitchPath(home), "utf8"))).toMatchObject({
      level: "stop-sign",
      reason: "drill",
    });
    printed = [];
    expect(await runShowSwitch(owner())).toBe(1);
    expect(printed.join("\n").match(/stop-sign since .*, by ann: drill/g)).toHaveLength(2);
    // Who means to stop more must see that less is stopped now.
    printed = [];
    expect(await runSetSwitch(owner(), { ...terms, level: "stop-new" })).toBe(0);
    expect(printed.join("\n")).toMatch(/stops less than before: stop-sign since .*, by ann: drill/);
    expect((await readKillSwitch(house.database)).level).toBe("stop-new");
    printed = [];
    expect(await runSetSwitch(owner(), { ...terms, level: "stop-new" })).toBe(0);
    expect(printed.join("\n")).not.toContain("less");
    expect(await runLiftSwitch(owner(), terms)).toBe(0);
    expect(await runShowSwitch(owner())).toBe(0);
    await expect(runSetSwitch(owner(), { ...terms, level: "stop-all" })).rejects.toThrow("LEVEL");
  });

  it("stops the home's signer without the ledger, and lifts nothing without it", async () => {
    const killSwitch = createKillSwitch({ sql: house.database, file: killSwitchPath(home) });
    expect((await killSwitch.read()).level).toBe("stop-broadcast");
    // Stopped by a file that cannot be read; not known to be stopped where the ledger alone is silent.
    expect(await runShowSwitch(command(DOWN))).toBe(1);
    await ensureKillSwitchFile(killSwitchPath(home), house.database);
    expect((await killSwitch.read()).level).toBe("none");
    expect(await runShowSwitch(command(DOWN))).toBe(2);
    expect(await runSetSwitch(command(DOWN), { ...terms, level: "stop-sign" })).toBe(1);
    expect(printed.join()).toContain("signer obeys");
    expect((await killSwitch.read()).level).toBe("stop-sign");
    expect(await runShowSwitch(command(DOWN))).toBe(1);
    const asJson = { ...command(DOWN), json: true };
    for (const run of [
      () => runSetSwitch(asJson, { ...terms, level: "stop-new" }),
      () => runLiftSwitch(asJson, terms),
    ]) {
      printed = [];
      expect(await run()).toBe(1);
      expect(JSON.parse(printed.join(""))).toEqual({
        schemaVersion: 1,
        refused: expect.stringContaining("The ledger could not be told"),
      });
    }
    expect(await runLiftSwitch(command(DOWN), terms)).toBe(1);
    expect((await killSwitch.read()).level).toBe("stop-sign");
    expect(await runLiftSwitch(owner(), terms)).toBe(0);
    expect((await killSwitch.read()).level).toBe("none");
  });

  it("is only a person's to lower: the worker's role may stop more, and never less", async () => {
    const insert = (level: string) =>
      house.database.query(
        `INSERT INTO kill_switch (level, reason, set_by) VALUES ($1, 'x', 'x')`,
        [level],
      );
    expect(await runSetSwitch(owner(), { ...terms, level: "stop-sign" })).toBe(0);
    for (const level of ["none", "stop-new"]) {
      await expect(insert(level)).rejects.toThrow("only a person lowers");
    }
    await insert("stop-broadcast");
    expect((await readKillSwitch(house.database)).level).toBe("stop-broadcast");
    expect(await runLiftSwitch(owner(), terms)).toBe(0);
  });

  it("keeps the higher of two levels that are set at once, in the file as in the ledger", async () => {
    const file = killSwitchPath(home);
    const stateOf = (level: KillSwitchLevel) => ({
      level,
      reason: "drill",
      by: "ben",
      at: undefined,
    });
    const setAside = (level: KillSwitchLevel) => {
      writeFileSync(file, encodeKillSwitch(stateOf(level)), { mode: 0o600 });
    };
    await ensureKillSwitchFile(file, house.database);
    // Another request is told to the ledger behind this one, and has written the home's file by then.
    const overtaken: SqlDatabase = Object.assign(Object.create(house.database), {
      query: house.database.query.bind(house.database),
      transaction: async <T>(work: (tx: Sql) => Promise<T>) => {
        const result = await house.database.transaction(work);
        await setKillSwitch(house.database, stateOf("stop-broadcast"));
        setAside("stop-broadcast");
        return result;
      },
    });
    const raise = createPolicyRoutes({
      database: overtaken,
      policy: { current: async () => house.files.policy },
      chainId: FAKE_CHAIN_ID,
      switchFile: file,
      clock: house.clock,
      log: silentLog,
    }).find(({ method, path }) => method === "post" && path === "/v1/kill-switch");
    const body = { level: "stop-sign", reason: "drill" };
    const caller = { keyId: "k", name: "ann", scopes: [] };
    await raise?.handler({ body, caller, headers: {}, params: {}, query: {} } as never);
    expect(readKillSwitchFile(file).level).toBe("stop-broadcast");
    expect((await readKillSwitch(house.database)).level).toBe("stop-broadcast");
    expect(await runLiftSwitch(owner(), terms)).toBe(0);
    // A person's, whose file is replaced before the ledger is told.
    const { env, ...rest } = owner();
    let isFirst = true;
    const late = Object.defineProperty(rest, "env", {
      get: () => {
        if (isFirst) setAside("stop-new");
        isFirst = false;
        return env;
      },
    }) as LedgerCommand;
    expect(await runSetSwitch(late, { ...terms, level: "stop-sign" })).toBe(0);
    expect([isFirst, readKillSwitchFile(file).level]).toEqual([false, "stop-sign"]);
    expect(await runLiftSwitch(owner(), terms)).toBe(0);
  });

  it("is set and lifted in the ledger where the home cannot be written, and says so", async () => {
    const base = home;
    home = readOnlyHome(base);
    const file = killSwitchPath(home);
    writeFileSync(file, encodeKillSwitch({ level: "none", reason: "", by: "", at: undefined }));
    const before = readFileSync(file, "utf8");
    const readOnly = owner();
    expect(await runSetSwitch(readOnly, { ...terms, level: "stop-sign" })).toBe(0);
    expect(printed.join("\n")).toMatch(/stop-sign[^]*ledger alone[^]*kill-switch.json/);
    expect(await readKillSwitch(house.database)).toMatchObject({ level: "stop-sign", by: "ann" });
    printed = [];
    expect(await runSetSwitch({ ...readOnly, json: true }, { ...terms, level: "stop-new" })).toBe(
      0,
    );
    expect(JSON.parse(printed.join(""))).toMatchObject({
      level: "stop-new",
      before: { level: "stop-sign", reason: "drill", by: "ann" },
      homeFault: expect.stringContaining("ENAMETOOLONG"),
    });
    // Her home's file knows nothing of what somebody else has set: what is lowered there is said all the same.
    const byBen = { reason: "another drill", operator: "ben" };
    for (const [level, less] of [
      ["stop-broadcast", false],
      ["stop-sign", true],
      ["stop-sign", false],
    ] as const) {
      printed = [];
      expect(await runSetSwitch(readOnly, { ...byBen, level })).toBe(0);
      const told = /less than before in the ledger: stop-broadcast since .*, by ben: another drill/;
      expect(told.test(printed.join("\n"))).toBe(less);
    }
    // Neither place can be told: nothing is stopped, and that is no success.
    const nowhere = { ...command(DOWN), home };
    await expect(runSetSwitch(nowhere, { ...terms, level: "stop-sign" })).rejects.toMatchObject({
      code: "HOME_UNUSABLE",
    });
    expect(await runLiftSwitch(readOnly, terms)).toBe(0);
    expect((await readKillSwitch(house.database)).level).toBe("none");
    expect(readFileSync(file, "utf8")).toBe(before);
    rmSync(base, { recursive: true });
  });

  it("says of a home that cannot be written, and still stops, that the ledger is lowered already", async () => {
    const base = home;
    home = readOnlyHome(base);
    const stopped = { level: "stop-broadcast", reason: "drill", by: "ann", at: undefined } as const;
    writeFileSync(killSwitchPath(home), encodeKillSwitch(stopped));
    const words = (at: string, place: string) =>
      new RegExp(
        `Cannot write .*kill-switch.json.* ${at}, .*other homes .* this home still stops: ${place}`,
      );
    const lowered = runSetSwitch(owner(), { ...terms, level: "stop-new" });
    await expect(lowered).rejects.toMatchObject({
      code: "HOME_UNUSABLE",
      message: expect.stringMatching(words("The ledger is at stop-new already", "stop-broadcast")),
    });
    expect((await readKillSwitch(house.database)).level).toBe("stop-new");
    await expect(runLiftSwitch(owner(), terms)).rejects.toMatchObject({
      message: expect.stringMatching(words("The ledger is at none already", "stop-broadcast")),
    });
    expect((await readKillSwitch(house.database)).level).toBe("none");
    rmSync(base, { recursive: true });
  });

  it("is lifted in a home that was stopped through its API by a word there, of which all tell", async () => {
    const worker = makeHome();
    const file = killSwitchPath(worker);
    await ensureKillSwitchFile(file, house.database);
    const base = home;
    home = readOnlyHome(base);
    cpSync(file, killSwitchPath(home));
    const lines: string[] = [];
    const destination = { write: (line: string) => lines.push(line) };
    const log = createLogger({ component: "test", destination });
    const homeSwitch = new HomeSwitch({ sql: house.database, file, log });
    const troubles = async () => {
      const told: (string | undefined)[] = [];
      for (let look = 0; look < 3; look += 1) {
        await homeSwitch.look();
        told.push(homeSwitch.trouble());
      }
      return told;
    };
    expect(await troubles()).toEqual([undefined, undefined, undefined]);
    const raise = createPolicyRoutes({
      database: house.database,
      policy: { current: async () => house.files.policy },
      chainId: FAKE_CHAIN_ID,
      switchFile: file,
      clock: house.clock,
      log: silentLog,
    }).find(({ method, path }) => method === "post" && path === "/v1/kill-switch");
    const body = { level: "stop-new", reason: "a key has leaked" };
    const caller = { keyId: "ann", name: "of ann", scopes: [] };
    await raise?.handler({ body, caller, headers: {}, params: {}, query: {} } as never);
    // Stopped everywhere: nobody has to look for where.
    expect(await troubles()).toEqual([undefined, undefined, undefined]);
    expect(await runLiftSwitch(owner(), terms)).toBe(0);
    const there =
      /its own config\/kill-switch\.json[^]*docker compose run .*killswitch lift --home/;
    expect(printed.join("\n")).toMatch(there);
    // Whoever lifts it may be between the two places at one look.
    const [first, ...later] = await troubles();
    expect(first).toBeUndefined();
    const stopped =
      /stop-new by this home's own kill-switch.json .*by ann: a key .*lift --reason TEXT` in this home/;
    for (const told of later) expect(told).toMatch(stopped);
    expect(lines.filter((line) => stopped.test(line))).toHaveLength(1);
    // In the worker's home, and role: the ledger is lifted already.
    printed = [];
    const inWorker = typedIn(worker, house.ledger.url, (text) => void printed.push(text));
    expect(await runLiftSwitch(inWorker, terms)).toBe(0);
    expect(printed).toEqual(["The kill switch is lifted."]);
    expect(await troubles()).toEqual([undefined, undefined, undefined]);
    rmSync(base, { recursive: true });
  });

  it("is found by the doctor where the ledger alone says so, as after set in a container", async () => {
    const found = async (asked: LedgerCommand) => {
      printed = [];
      await runDoctor({ ...asked, json: true }, { strict: false });
      const { checks } = JSON.parse(printed.join(""));
      return checks.filter(({ id }: { id: string }) => id === "kill-switch");
    };
    const state = { level: "none", reason: "", by: "", at: undefined } as const;
    writeFileSync(killSwitchPath(home), encodeKillSwitch(state));
    expect(await found(owner())).toMatchObject([{ severity: "pass", value: "nothing is stopped" }]);
    const stopped = { ...state, level: "stop-sign", reason: "drill", by: "ann" } as const;
    await setKillSwitch(house.ledger.owner, stopped);
    expect(await found(owner())).toMatchObject([
      { severity: "fail", value: expect.stringMatching(/^stop-sign since .*: drill$/) },
    ]);
    expect(await found(command(DOWN))).toMatchObject([
      { severity: "pass", value: expect.stringContaining("the ledger was not asked") },
    ]);
    expect(await runLiftSwitch(owner(), terms)).toBe(0);
  });

  it("is what the ledger says where a home lost its file", async () => {
    expect(await runSetSwitch(owner(), { ...terms, level: "stop-new" })).toBe(0);
    rmSync(killSwitchPath(home));
    await ensureKillSwitchFile(killSwitchPath(home), house.database);
    expect(JSON.parse(readFileSync(killSwitchPath(home), "utf8"))).toMatchObject({
      level: "stop-new",
    });
    expect(await runLiftSwitch(owner(), terms)).toBe(0);
  });
});
