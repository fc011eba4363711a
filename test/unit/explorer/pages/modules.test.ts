/**
 * Stake and governance as pages show them, from answers that a node gave (recorded of a chain with two
 * validators, one of them with hostile texts, and a proposal that passed), and what is no answer.
 */
import fs from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parseBech32 } from "../../../../chain/address.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { parameterRoutes } from "../../../../explorer/pages/governance/parameters.js";
import { proposalRoutes } from "../../../../explorer/pages/governance/proposals.js";
import { stakeSection } from "../../../../explorer/pages/staking/account-stake.js";
import { validatorPageRoutes } from "../../../../explorer/pages/staking/validator.js";
import { validatorRoutes } from "../../../../explorer/pages/staking/validators.js";
import type { Page, PageRequest, PageRoute } from "../../../../explorer/server/page.js";
import { GovernanceSource } from "../../../../explorer/sources/modules/governance-source.js";
import { RestClient } from "../../../../explorer/sources/modules/rest-client.js";
import { StakingSource } from "../../../../explorer/sources/modules/staking-source.js";
import { NodeFault } from "../../../../rpc-client/errors.js";
import { pageRequest, shownContent } from "../../../helpers/pages/explorer-page.js";
import { all } from "../../../helpers/pages/html.js";
import { PATIENCE_MS } from "../../../helpers/until.js";

interface Recorded {
  readonly path: string;
  readonly status: number;
  readonly body: unknown;
}

const recorded = JSON.parse(
  fs.readFileSync("test/fixtures/explorer/module-answers.json", "utf8"),
) as Readonly<Record<string, Recorded>>;

const TOKEN = 10n ** 18n;
const OPERATOR = "addrvaloper1tc368zdcf8p08cq9kakrz46r09x0fcy670sdy8";
const HOSTILE = "addrvaloper14ee2frq6x6733tcks4qu2vphjewjde9gz20wvn";
const ACCOUNT = parseBech32("addr1l2cpzjvaqf2dwq54q6k7p0fy830kck7lud7hsv");
const signal = new AbortController().signal;

let server: Server;
let rest: RestClient;
let context: PageContext;
/** What the node answers in place of what was recorded, by path. */
const replaced = new Map<string, { status: number; text: string }>();
const asked: string[] = [];

beforeAll(async () => {
  // The first of several answers of one path; of the second validator's earnings the first one's.
  const answers = new Map(
    Object.values(recorded)
      .toReversed()
      .map((one) => [one.path, one]),
  );
  server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://node");
    asked.push(`${url.pathname}${url.search}`);
    const other = replaced.get(url.pathname);
    const ofFirst = url.pathname.replace(HOSTILE, OPERATOR);
    const found = answers.get(url.pathname) ?? answers.get(ofFirst);
    const missing = { code: 5, message: "not found", details: [] };
    response.statusCode = other?.status ?? found?.status ?? 404;
    if (response.statusCode === 302) response.setHeader("location", "http://127.0.0.1:1/");
    response.end(other?.text ?? JSON.stringify(found?.body ?? missing));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  rest = new RestClient({ url, timeoutMs: PATIENCE_MS, maxBytes: 100_000 });
  const sources = { staking: new StakingSource(rest), governance: new GovernanceSource(rest) };
  // These pages ask the modules alone.
  context = sources as PageContext;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const request = (parameter: string, query = "", language: "en" | "de" = "en") =>
  pageRequest({ parameter, query, language, signal });

async function open(routes: readonly PageRoute[], path: string, asking: PageRequest) {
  const route = routes.find((one) => one.path === path);
  const page = (await route?.handle(asking)) as Page;
  return { page, ...shownContent(page.content) };
}

describe("validators", () => {
  it("are read with stake, commission, state and how they sign", async () => {
    const { items, next } = await context.staking.validators(undefined, signal);
    expect(items).toMatchObject([
      {
        operator: parseBech32(OPERATOR, "addrvaloper"),
        status: "bonded",
        isJailed: false,
        stakeAtoken: 105n * TOKEN,
        moniker: "node0",
        commission: { rate: TOKEN / 10n, maxRate: TOKEN / 5n, maxChangeRate: TOKEN / 100n },
      },
    ]);
    expect(next).toBe("rnKkjBo2vRivFoVBxTA3ll0m5Kg=");
    const records = await context.staking.signing(signal);
    // The node names its validators by the address of their key: that it is found says that it fits.
    expect(records.get("addrvalcons1969zns4tumk68xsngmpxxdcnxpqzchtfq75ql7")).toEqual({
      missedBlocks: 0n,
      countedBlocks: 101n,
      jailedUntilSeconds: undefined,
      isTombstoned: false,
    });
    expect(await context.staking.earnings(parseBech32(OPERATOR, "addrvaloper"), signal)).toEqual({
      outstandingAtoken: 688359880437552928446n,
      commissionAtoken: 69177991458854039929n,
      slashes: 0,
    });
  });

  it("have a page with who delegated, in pages, and who is leaving", async () => {
    const routes = validatorPageRoutes(context);
    const { text, root } = await open(routes, "/validator", request(OPERATOR));
    expect(text).toContain("105 TOKEN");
    expect(text).toContain("Commission10.00 %");
    expect(text).toContain("97.22 %");
    expect(text).toContain("100 TOKEN95.23 %");
    expect(text).toContain("3 TOKEN2026-11-21 14:28:52 UTC");
    const older = all(root, "a").map(({ attributes }) => attributes.get("href"));
    expect(older).toContain(
      "/validator/0x5E23a389b849c2f3E005B76C315743794cF4E09A?after=%2BrARSZ0CVNcClQat4L0kPF9sW98%3D",
    );
    await open(routes, "/validator", request(OPERATOR, "after=%2BrARSZ0CVNcClQat4L0kPF9sW98%3D"));
    expect(asked).toContainEqual(
      expect.stringMatching(/delegations\?.*pagination.key=%2BrARSZ0CVNcClQat4L0kPF9sW98%3D/),
    );
  });

  it("cannot make pages do anything by what they call themselves", async () => {
    const routes = validatorPageRoutes(context);
    const { html, text } = await open(routes, "/validator", request(HOSTILE));
    expect(html).not.toMatch(/<script|<img|href="javascript/);
    expect(html).not.toContain("\u202e");
    expect(text).toContain('<script>alert("moniker")</script>');
    expect(text).toContain("javascript:alert(1)");
  });

  it("that are jailed or barred are marked", async () => {
    const path = recorded["validator"]?.path ?? "";
    const { validator } = structuredClone(recorded["validator"]?.body) as {
      validator: Record<string, unknown>;
    };
    Object.assign(validator, {
      jailed: true,
      status: "BOND_STATUS_UNBONDING",
      unbonding_time: "2026-12-01T00:00:00Z",
    });
    replaced.set(path, { status: 200, text: JSON.stringify({ validator }) });
    const signing = {
      address: "addrvalcons1lpyavue9lt8sg9mmce3m9hz5gpgcx8zcgk25c5",
      start_height: "28",
      index_offset: "75",
      jailed_until: "9999-12-31T23:59:59Z",
      tombstoned: true,
      missed_blocks_counter: "76",
    };
    const infoPath = `/cosmos/slashing/v1beta1/signing_infos/${signing.address}`;
    replaced.set(infoPath, {
      status: 200,
      text: JSON.stringify({ val_signing_info: signing }),
    });
    const routes = validatorPageRoutes(context);
    const { text } = await open(routes, "/validator", request(HOSTILE));
    expect(text).toContain("leaving the set barred for ever");
    expect(text).toContain("9999-12-31 23:59:59 UTC");
    expect(text).toContain("2026-12-01 00:00:00 UTC");
    expect(text).toContain("76 of 76 missed (0.00 %)");
    const german = await open(routes, "/validator", request(HOSTILE, "", "de"));
    expect(german.text).toContain("für immer ausgeschlossen");
    replaced.clear();
  });
});

describe("the list of validators", () => {
  it("has their stake beside a node that serves no consensus RPC", async () => {
    const away = () => Promise.reject(new NodeFault("NODE_UNREACHABLE", "no consensus RPC"));
    const beside = {
      ...context,
      chain: { head: async () => ({ height: 103 }) },
      consensus: { validators: away, commits: away },
    } as unknown as PageContext;
    const { text } = await open(validatorRoutes(beside), "/validators", request(""));
    expect(text).toContain("node0");
    expect(text).toContain("105 TOKEN97.22 %10.00 %");
    expect(text).toContain("The node does not have who signed.");
    expect(text).not.toContain("Total power");
  });
});

describe("an account's stake", () => {
  it("shows delegations with rewards, what leaves and when, and what moved", async () => {
    const { text } = shownContent(await stakeSection(context, ACCOUNT, request("")));
    expect(text).toContain("5 TOKEN19.691812653770464961 TOKEN");
    expect(text).toContain("Rewards, not yet taken28.006133552029105722 TOKEN");
    expect(text).toContain("3 TOKEN2026-11-21 14:28:52 UTC");
    expect(text).toContain("2 TOKEN2026-11-21 14:28:53 UTC");
  });

  it("shows locked coins with their schedule", async () => {
    const base_vesting_account = {
      base_account: {},
      original_vesting: [{ denom: "atoken", amount: `${9n * TOKEN}` }],
      delegated_free: [],
      delegated_vesting: [{ denom: "atoken", amount: `${2n * TOKEN}` }],
      end_time: "1900000000",
    };
    const account = {
      "@type": "/cosmos.vesting.v1beta1.ContinuousVestingAccount",
      base_vesting_account,
      start_time: "1800000000",
    };
    const path = recorded["account"]?.path ?? "";
    replaced.set(path, { status: 200, text: JSON.stringify({ account }) });
    const { text } = shownContent(await stakeSection(context, ACCOUNT, request("")));
    expect(text).toContain("Locked at the start9 TOKEN");
    expect(text).toContain("Become free from2027-01-15 08:00:00 UTC");
    expect(text).toContain("All free at2030-03-17 17:46:40 UTC");
    expect(text).toContain("Of them delegated2 TOKEN");
    expect(text).toContain("Can be sent999999933.420034150987440861 TOKEN");
    replaced.clear();
  });

  it("is missing on a chain without it, and told where the node does not answer", async () => {
    const path = recorded["delegations"]?.path ?? "";
    replaced.set(path, { status: 501, text: '{"code":12,"message":"","details":[]}' });
    expect(await stakeSection(context, ACCOUNT, request(""))).toBeUndefined();
    for (const [status, text] of [
      [503, "{}"],
      [429, '{"code":8,"message":"too many requests: ask less often","details":[]}'],
      [200, "<html>"],
      [200, "[]"],
      [302, ""],
      [200, JSON.stringify({ text: "x".repeat(200_000) })],
    ] as const) {
      replaced.set(path, { status, text });
      const answer = shownContent(await stakeSection(context, ACCOUNT, request("")));
      expect({ status, text: answer.text }).toEqual({
        status,
        text: "StakeThe node's REST interface does not answer: this part is missing.",
      });
    }
    // What breaks its own form is not shown as something else.
    replaced.set(path, { status: 200, text: '{"delegation_responses":[{"delegation":{}}]}' });
    await expect(stakeSection(context, ACCOUNT, request(""))).rejects.toMatchObject({
      code: "BAD_ANSWER",
    });
    replaced.clear();
    await expect(
      stakeSection(context, ACCOUNT, request("", "stake=%3Cb%3E")),
    ).rejects.toMatchObject({ code: "BAD_REQUEST" });
  });
});

describe("governance", () => {
  const routes = () => proposalRoutes(context);

  it("lists proposals with their state", async () => {
    const { text, html } = await open(routes(), "/proposals", request(""));
    expect(text).toContain("<img src=x> Go onpassedMsgSoftwareUpgrade");
    expect(html).not.toContain("<img");
    expect(asked.findLast((one) => one.startsWith("/cosmos/gov/v1/proposals?"))).toContain(
      "pagination.reverse=true",
    );
  });

  it("lists those that wait for deposits with the end of the deposits, which is none of votes", async () => {
    const { proposals } = structuredClone(recorded["proposals"]?.body) as {
      proposals: Record<string, unknown>[];
    };
    const waiting = {
      ...proposals[0],
      status: "PROPOSAL_STATUS_DEPOSIT_PERIOD",
      deposit_end_time: "2026-12-01T00:00:00Z",
      voting_start_time: null,
      voting_end_time: null,
    };
    const text = JSON.stringify({ proposals: [waiting] });
    replaced.set("/cosmos/gov/v1/proposals", { status: 200, text });
    const found = await open(routes(), "/proposals", request(""));
    expect(found.text).toMatch(/Deposits until 2026-12-01 00:00:00 UTC$/);
    replaced.clear();
  });

  it("shows what a proposal does, who voted how, its result and what was needed", async () => {
    const { text, html, root } = await open(routes(), "/proposal", request("1"));
    expect(text).toContain("Statuspassed");
    expect(text).toContain("A later release\nwith lines");
    expect(text).toContain('"height": "1000000"');
    expect(text).toContain("yes100 TOKEN93.45 %");
    expect(text).toContain("abstain4.2 TOKEN3.92 %");
    expect(text).toContain("no2.8 TOKEN2.61 %");
    expect(text).toContain("Stake that has to vote33.40 %");
    expect(text).toContain("Voting until2026-11-21 14:19:08 UTC");
    expect(html).not.toMatch(/<img|<b>info/);
    const links = all(root, "a").map(({ attributes }) => attributes.get("href"));
    expect(links).toContain("/proposal/1?votes=Ag%3D%3D");
  });

  it("counts votes while they are given, and says where there are too many", async () => {
    const body = JSON.stringify(recorded["proposalVoting"]?.body);
    replaced.set("/cosmos/gov/v1/proposals/1", { status: 200, text: body });
    const open1 = await open(routes(), "/proposal", request("1"));
    expect(open1.text).toContain("Votes until now");
    // 107 of the 108 TOKEN that the validators have.
    expect(open1.text).toContain("Stake that voted99.07 % · 107 TOKEN");
    const many = '{"code":8,"message":"too many votes","details":[]}';
    replaced.set("/cosmos/gov/v1/proposals/1/tally", { status: 429, text: many });
    const open2 = await open(routes(), "/proposal", request("1"));
    expect(open2.text).toContain("too many votes to count");
    replaced.clear();
  });

  it("refuses numbers that are none, and does not find what is not there", async () => {
    for (const text of ["0", "-1", "x", "1e3", "9".repeat(30)]) {
      await expect(open(routes(), "/proposal", request(text))).rejects.toMatchObject({
        code: "BAD_REQUEST",
      });
    }
    await expect(open(routes(), "/proposal", request("99"))).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
  });

  it("shows parameters of every module as people read them, and the plan", async () => {
    const { text } = await open(parameterRoutes(context), "/parameters", request(""));
    expect(text).toContain("quorum33.40 %");
    expect(text).toContain("expedited_min_deposit50 TOKEN");
    expect(text).toContain("unbonding_time600s");
    expect(text).toContain("slash_fraction_double_sign5.00 %");
    expect(text).toContain("burn_vote_vetotrue");
    // What gas costs is no share of anything.
    expect(text).toContain("min_gas_price0.025 atoken");
    expect(text).toContain("base_fee0 atoken");
    expect(text).toContain("Planned upgradelater, at block 1000000");
  });

  it("is not there on a chain without it", async () => {
    const text = '{"code":12,"message":"Not Implemented","details":[]}';
    replaced.set("/cosmos/gov/v1/proposals", { status: 501, text });
    const { page, text: words } = await open(routes(), "/proposals", request(""));
    expect(page.status).toBe(404);
    expect(words).toContain("no staking and no governance");
    replaced.set("/cosmos/gov/v1/proposals", { status: 500, text });
    const away = await open(routes(), "/proposals", request(""));
    expect(away.page.status).toBe(503);
    replaced.clear();
  });
});
