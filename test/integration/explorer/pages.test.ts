/** Every page of the explorer over a real node: what it says, and how it is built. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { bech32 } from "@scure/base";
import { formatEther, getAddress, getBytes, hexlify } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { ExplorerStage, pagesOf, type Scene, STAKE_PARAMS } from "../../helpers/pages/explorer.js";
import { all, elements, type HtmlElement, textOf } from "../../helpers/pages/html.js";
import { until } from "../../helpers/until.js";

let stage: ExplorerStage;
let scene: Scene;

/** Who runs the chain's validator, in bech32. */
let operator: string;

/** Addresses of a page for each kind of page. */
let pages: Readonly<Record<string, string>>;

const readOperator = (text: string) =>
  getAddress(hexlify(bech32.fromWords(bech32.decode(text as `${string}1${string}`).words)));
const bech = (address: string) => bech32.encode("addr", bech32.toWords(getBytes(address)));

const page = (...request: Parameters<ExplorerStage["page"]>) => stage.page(...request);

/** Asks the node's consensus RPC. */
async function comet(target: string): Promise<Record<string, never>> {
  const answer = await fetch(`http://127.0.0.1:${26657 + stage.offset}${target}`);
  return ((await answer.json()) as { result: Record<string, never> }).result;
}

beforeAll(async () => {
  stage = await ExplorerStage.open(0, {}, STAKE_PARAMS);
  scene = await stage.play();
  operator = await stage.playStake();
  pages = pagesOf(scene, operator);
});

afterAll(async () => {
  await stage.close();
});

describe("every page", () => {
  it("is well formed, named, and can be used with a keyboard, a reader and no script", async () => {
    for (const [name, target] of Object.entries(pages)) {
      for (const language of ["en", "de"]) {
        const { root, reply } = await page(target, { "accept-language": language });
        const found = elements(root);
        const about = `${name} in ${language}`;
        expect({ about, lang: root.attributes.get("lang") }).toEqual({ about, lang: language });
        expect({ about, h1: all(root, "h1").length }).toEqual({ about, h1: 1 });
        expect({ about, title: textOf(all(root, "title")[0] as HtmlElement) }).not.toEqual({
          about,
          title: "",
        });
        const ids = found.flatMap(({ attributes }) => attributes.get("id") ?? []);
        expect({ about, ids: new Set(ids).size }).toEqual({ about, ids: ids.length });
        // WCAG 1.3.1, 3.3.2: every field has a label of its own.
        const labels = new Set(all(root, "label").map(({ attributes }) => attributes.get("for")));
        const fields = ["input", "select", "textarea"].flatMap((tag) => all(root, tag));
        const unlabelled = fields.filter(({ attributes }) => !labels.has(attributes.get("id")));
        expect({ about, unlabelled }).toEqual({ about, unlabelled: [] });
        // WCAG 2.4.1, 1.3.1: a way past the head, landmarks, tables with captions and headers.
        expect(all(root, "a")[0]?.attributes.get("href")).toBe("#content");
        expect(ids).toContain("content");
        for (const table of all(root, "table")) {
          expect({ about, captions: all(table, "caption").length }).toEqual({ about, captions: 1 });
          const heads = all(table, "th").map(({ attributes }) => attributes.get("scope"));
          expect({ about, heads: new Set(heads) }).toEqual({ about, heads: new Set(["col"]) });
        }
        // WCAG 1.1.1, 4.1.2: drawings, parts that scroll and ways have names.
        for (const part of found.filter(({ name: tag }) => tag === "svg" || tag === "nav")) {
          expect({ about, label: part.attributes.get("aria-label") ?? "" }).not.toEqual({
            about,
            label: "",
          });
        }
        for (const link of [...all(root, "a"), ...all(root, "button")]) {
          expect({ about, text: textOf(link).trim() }).not.toEqual({ about, text: "" });
        }
        // WCAG 1.3.1: no level of heading is left out.
        const levels = found.flatMap(({ name: tag }) => /^h([1-6])$/.exec(tag)?.[1] ?? []);
        expect({ about, levels: new Set(levels) }).toEqual({
          about,
          levels: new Set(levels.includes("2") ? ["1", "2"] : ["1"]),
        });
        expect(reply.headers["content-language"]).toBe(language);
      }
    }
  });

  it("has nothing inline, nothing of others, and a policy that forbids both", async () => {
    for (const [about, target] of Object.entries(pages)) {
      const { root, reply } = await page(target);
      expect(reply.headers["content-security-policy"]).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
          "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      );
      expect(reply.headers["x-content-type-options"]).toBe("nosniff");
      expect(reply.headers["referrer-policy"]).toBe("same-origin");
      for (const element of elements(root)) {
        for (const [name, value] of element.attributes) {
          expect({ about, name: /^(on|style$|srcdoc$)/.test(name) }).toEqual({
            about,
            name: false,
          });
          if (name === "href" || name === "src" || name === "action") {
            expect({ about, value: /^(\/(?!\/)|#|\?)/.test(value) }).toEqual({
              about,
              value: true,
            });
          }
        }
      }
      for (const script of all(root, "script")) {
        expect(script.children).toEqual([]);
        expect(script.attributes.get("src")).toMatch(/^\/assets\//);
      }
      expect(all(root, "style")).toEqual([]);
    }
  });

  it("names only files that are there, and gives them for ever", async () => {
    const { root } = await page("/");
    const named = [...all(root, "link"), ...all(root, "script")].map(
      ({ attributes }) => attributes.get("href") ?? attributes.get("src") ?? "",
    );
    expect(named.length).toBeGreaterThan(2);
    for (const target of named) {
      const { status, headers } = await stage.get(target);
      expect({ target, status }).toEqual({ target, status: 200 });
      expect(headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    }
    const folder = (named[0] ?? "").replace(/[^/]+$/, "");
    const module = await stage.get(`${folder}light/verify-proof.mjs`);
    expect(module.status).toBe(200);
    expect(module.headers["content-type"]).toContain("javascript");
    expect((await stage.get("/assets/x/../../config/faucet.key")).status).toBe(404);
    expect((await stage.get("/assets/x/%2e%2e/%2e%2e/config.ts")).status).toBe(404);
  });

  it("names no proposer of the first block, which nobody proposed", async () => {
    const { root } = await page("/block/0");
    const links = all(root, "a").map(({ attributes }) => attributes.get("href") ?? "");
    expect(links.filter((href) => href.startsWith("/validator/"))).toEqual([]);
  });

  it("names this kit's node where somebody is to ask it by hand", async () => {
    const command = `curl -s http://127.0.0.1:${26657 + stage.offset}/commit |`;
    expect((await page("/verify")).text).toContain(command);
  });

  it("leads only to pages that are there", async () => {
    const targets = new Set<string>();
    for (const target of Object.values(pages)) {
      const { root } = await page(target);
      for (const link of all(root, "a")) targets.add(link.attributes.get("href") ?? "");
    }
    // The unknown page's own address comes back in the other language.
    const dead = ["/no/such/page", `/tx/0x${"77".repeat(32)}`, "/search?q=nothing"];
    for (const target of targets) {
      if (target.startsWith("#") || dead.some((start) => target.startsWith(start))) continue;
      const { status } = await stage.get(target);
      const isKnown = [200, 302].includes(status);
      // A block above the page's, of an account that holds no code.
      expect({ target, status: isKnown ? 200 : status }).toEqual({ target, status: 200 });
    }
  });
});

describe("a transaction", () => {
  it("is found by either hash, in any case, with and without 0x", async () => {
    const { hash, blockNumber, index } = scene.plain;
    const found = await comet(`/block?height=${blockNumber + 1}`);
    expect(found).toBeDefined();
    const search = await comet(`/tx_search?query="tx.height=${blockNumber + 1}"`);
    expect(search).toBeDefined();
    const { text } = await page(`/tx/${hash}`);
    const cosmosHash = /Cosmos hash([0-9A-F]{64})/.exec(text)?.[1] ?? "";
    // The node's consensus RPC knows that hash, and says the same place.
    const theirs = (await comet(`/tx?hash=0x${cosmosHash}`)) as unknown as {
      height: string;
      index: number;
    };
    expect({ height: Number(theirs.height), index: theirs.index }).toEqual({
      height: blockNumber,
      index,
    });
    for (const form of [
      hash.toUpperCase().replace("0X", "0x"),
      hash.slice(2),
      hash.slice(2).toUpperCase(),
      cosmosHash,
      cosmosHash.toLowerCase(),
      `0x${cosmosHash}`,
    ]) {
      const { reply, text: shown } = await page(`/tx/${form}`);
      expect({ form, status: reply.status, isSame: shown.includes(hash) }).toEqual({
        form,
        status: 200,
        isSame: true,
      });
      const { status, headers } = await stage.get(`/search?q=${form}`);
      expect({ form, status }).toEqual({ form, status: 302 });
      expect(String(headers["location"]).toLowerCase()).toContain(
        `/tx/0x${form.replace(/^0x/, "")}`.toLowerCase(),
      );
    }
  });

  it("shows value, fee with its burned half, confirmations and that it is final", async () => {
    const { text } = await page(`/tx/${scene.plain.hash}`);
    expect(text).toContain("1.5 TOKEN");
    const fee = scene.plain.gasUsed * scene.plain.gasPrice;
    expect(text).toContain(`Fee${formatEther(fee).replace(/\.0$/, "")} TOKEN`);
    expect(text).toContain(`Of the fee burned${formatEther(fee / 2n).replace(/\.0$/, "")} TOKEN`);
    expect(text).toContain("2/2 · final");
    expect(text).toMatch(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/);
  });

  it("shows what moved inside of calls", async () => {
    const { text } = await page(`/tx/${scene.internal.hash}`);
    expect(text).toContain("inside, call 0");
    expect(text).toContain("0.000000000000000007 TOKEN");
  });

  it("says why it failed, and that nothing but the fee moved", async () => {
    const { text } = await page(`/tx/${scene.failed.hash}`);
    expect(text).toContain('execution reverted: <script>alert("reason")</script>');
    expect(text).toContain("not moved");
  });

  it("reads calls and logs whose signatures are known", async () => {
    const { text } = await page(`/tx/${scene.transfer.hash}`);
    expect(text).toContain("transfer (read by its signature");
    expect(text).toContain("Transfer (read by its signature");
    expect(text).toContain("value: 2500000");
  });

  it("that no block has is a 404 that says up to where it was looked", async () => {
    const { reply, text } = await page(`/tx/0x${"77".repeat(32)}`);
    expect(reply.status).toBe(404);
    expect(text).toMatch(/not in blocks up to \d+; pending: no/);
    expect((await page("/tx/0x1234")).reply.status).toBe(400);
  });
});

describe("a block", () => {
  it("is found by height, by EVM hash and by consensus hash", async () => {
    const { blockNumber, blockHash } = scene.plain;
    const block = (await comet(`/block?height=${blockNumber}`)) as unknown as {
      block_id: { hash: string };
    };
    for (const form of [String(blockNumber), blockHash, blockHash.slice(2), block.block_id.hash]) {
      const { reply, text } = await page(`/block/${form}`);
      expect({ form, status: reply.status }).toEqual({ form, status: 200 });
      expect(text).toContain(blockHash);
      expect(text.toLowerCase()).toContain(block.block_id.hash.toLowerCase());
      const found = await stage.get(`/search?q=${form}`);
      expect({ form, to: found.headers["location"] }).toEqual({
        form,
        to: `/block/${blockNumber}`,
      });
    }
    expect((await stage.get(`/tx/${blockHash}`)).headers["location"]).toBe(`/block/${blockNumber}`);
  });

  it("shows who signed it and what it minted and burned", async () => {
    const { text } = await page(`/block/${scene.plain.blockNumber}`);
    expect(text).toContain("Signed by1 / 1 (100.00 %)");
    expect(text).toContain("for the block");
    for (const reason of ["FEE_BURN", "TREASURY", "MINT"]) expect(text).toContain(reason);
    expect(text).toContain(scene.plain.hash.slice(0, 10));
  });

  it("has a genesis, and none above the head", async () => {
    const genesis = await page("/block/0");
    expect(genesis.reply.status).toBe(200);
    expect(genesis.text).toContain("GENESIS");
    const above = await page("/block/999999999");
    expect(above.reply.status).toBe(404);
    expect(above.text).toMatch(/999999999 is not in the chain up to block \d+/);
    expect((await page("/block/x")).reply.status).toBe(400);
    expect((await page("/block/-1")).reply.status).toBe(400);
    expect((await page("/block/1?page=2")).reply.status).toBe(400);
  });
});

describe("an account", () => {
  it("is one page for hex, upper case, without prefix and bech32", async () => {
    const forms = [
      scene.other,
      scene.other.slice(2).toUpperCase(),
      bech(scene.other),
      bech(scene.other).toUpperCase(),
      bech32.encode("addrvaloper", bech32.toWords(getBytes(scene.other))),
    ];
    for (const form of forms) {
      const { reply, text } = await page(`/address/${form}`);
      expect({ form, status: reply.status }).toEqual({ form, status: 200 });
      expect(text).toContain(bech(scene.other));
      expect(text).toContain("Balance1.500000000000000007 TOKEN");
      const found = await stage.get(`/search?q=${form}`);
      expect(found.headers["location"]).toBe(`/address/${parseAddress(scene.other)}`);
    }
    for (const form of ["0x12", `${bech(scene.other)}q`, "addr1", "x"]) {
      expect({ form, status: (await page(`/address/${form}`)).reply.status }).toEqual({
        form,
        status: 400,
      });
    }
  });

  it("shows its journal newest first, internal moves included, and that the indexer is away", async () => {
    const { text } = await page(`/address/${scene.other}`);
    expect(text).toContain("+1.5 TOKEN");
    expect(text).toContain("+0.000000000000000007 TOKEN");
    expect(text.indexOf("+0.000000000000000007")).toBeLessThan(text.indexOf("+1.5 TOKEN"));
    expect(text).toContain("The indexer does not answer");
    expect(text).toContain("no contract");
    const contract = await page(`/address/${scene.token}`);
    expect(contract.text).toMatch(/KindContract \d+ bytes/);
  });

  it("shows its newest changes to who asks for those below a height that is none yet", async () => {
    for (const height of ["100000", "999999999999999"]) {
      const { reply, text } = await page(`/address/${scene.other}?before=${height}`);
      expect({ height, status: reply.status }).toEqual({ height, status: 200 });
      expect(text).toContain("+1.5 TOKEN");
    }
  });

  it("draws its balance, with the same as a table", async () => {
    const { root } = await page(`/address/${scene.other}`);
    expect(all(root, "polyline")).toHaveLength(1);
    expect(all(root, "details").length).toBeGreaterThan(0);
  });
});

describe("texts of strangers", () => {
  it("are shown as text, short, and without what turns or hides letters", async () => {
    const { reply, text } = await page(`/token/${scene.token}`);
    expect(reply.text).not.toMatch(/<script>|<img|<svg onload/);
    expect(text).toContain('<script>alert("name")</script><img');
    expect(text).not.toContain("onerror");
    expect(text).not.toMatch(/[\u202a-\u202e\u200b]/u);
    expect(text).toContain("Nobody vouches for this token");
  });

  it("in searches come back as text", async () => {
    const { reply, root } = await page(`/search?q=${encodeURIComponent('"><script>x</script>')}`);
    expect(reply.status).toBe(404);
    expect(reply.text).not.toContain("<script>x");
    expect(all(root, "input")[0]?.attributes.get("value")).toBe('"><script>x</script>');
  });

  it("in addresses are refused or shown as text", async () => {
    for (const target of [
      "/%3Cscript%3Ealert(1)%3C/script%3E",
      "/block/%3Csvg%20onload=alert(1)%3E",
      "/tx/%22%3E%3Cscript%3E",
      "/deposit?tx=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
    ]) {
      const { reply } = await page(target);
      expect([400, 404]).toContain(reply.status);
      expect(reply.text).not.toMatch(/<script>|<svg onload/);
    }
  });
});

describe("validators, supply, tokens, pairs", () => {
  it("show power and uptime", async () => {
    const { text } = await page("/validators");
    expect(text).toContain("100.00 %");
    expect(text).toMatch(/\d+ \/ \d+ \(100\.00 %\)/);
  });

  it("show the supply that consensus tells", async () => {
    const { text, root } = await page("/supply");
    const height = Number(/As of block(\d+)/.exec(text)?.[1]);
    expect(height).toBeGreaterThan(0);
    expect(text).toMatch(/Total supply\d+(\.\d+)? TOKEN/);
    expect(all(root, "polyline").length).toBeGreaterThan(0);
  });

  it("show a pair's reserves, and no pair where there is none", async () => {
    const { text } = await page(`/pair/${scene.pair}`);
    expect(text).toContain("5000000 units");
    expect((await page(`/pair/${scene.token}`)).reply.status).toBe(404);
    expect((await page(`/token/${scene.other}`)).reply.status).toBe(404);
    expect((await page(`/pair/${scene.pair}?interval=2w`)).reply.status).toBe(400);
  });
});

describe("stake and governance", () => {
  it("show the validator with its stake, and who delegated to it", async () => {
    const list = await page("/validators");
    // 100 TOKEN of its own, 10 delegated, 3 of them taken back.
    expect(list.text).toContain("107 TOKEN100.00 %");
    expect(list.text).toContain("in the set");
    const { text } = await page(`/validator/${operator}`);
    expect(text).toContain("Own stake100 TOKEN");
    expect(text).toContain("7 TOKEN6.54 %");
    expect((await page(`/validator/${scene.sender}`)).reply.status).toBe(404);
    expect((await page("/validator/x")).reply.status).toBe(400);
    expect((await page(`/validator/${operator}?after=x!`)).reply.status).toBe(400);
    // A place that no list has is the reader's mistake, too.
    expect((await page(`/validator/${operator}?after=AAAA`)).reply.status).toBe(400);
  });

  it("lead from a block to the validator that proposed it, and find both by what they are called", async () => {
    const account = readOperator(operator);
    const { root } = await page(`/block/${scene.plain.blockNumber}`);
    const proposer = all(root, "a")
      .map(({ attributes }) => attributes.get("href") ?? "")
      .find((href) => href.startsWith("/validator/"));
    const led = await stage.get(proposer ?? "");
    expect(led.headers["location"]).toBe(`/validator/${account}`);
    const key = proposer?.slice("/validator/".length) ?? "";
    const consensus = bech32.encode("addrvalcons", bech32.toWords(getBytes(key)));
    for (const form of [key, key.toUpperCase().slice(2), consensus, consensus.toUpperCase()]) {
      const found = await stage.get(`/search?q=${form}`);
      const place = String(found.headers["location"]);
      const whole = place.includes(account.toLowerCase())
        ? place
        : String((await stage.get(place)).headers["location"]);
      expect({ form, whole: whole.toLowerCase() }).toEqual({
        form,
        whole: `/validator/${account}`.toLowerCase(),
      });
    }
    for (const form of ["proposal%201", "Prop%20%231", "gov1"]) {
      expect((await stage.get(`/search?q=${form}`)).headers["location"]).toBe("/proposal/1");
    }
    const { validators } = (await (
      await fetch(`http://127.0.0.1:${1317 + stage.offset}/cosmos/staking/v1beta1/validators`)
    ).json()) as { validators: { description: { moniker: string } }[] };
    const moniker = validators[0]?.description.moniker ?? "";
    const named = await page(`/search?q=${encodeURIComponent(moniker.toUpperCase())}`);
    expect(named.reply.status).toBe(200);
    expect(named.text).toContain(moniker);
    expect((await page(`/validator/0x${"99".repeat(20)}`)).reply.status).toBe(404);
  });

  it("show an account's delegations, and what is on its way out and when it is free", async () => {
    const { text } = await page(`/address/${scene.sender}`);
    expect(text).toContain("ValidatorDelegatedRewards, not yet taken");
    expect(text).toMatch(/7 TOKEN\d+(\.\d+)? TOKEN/);
    const asked = await fetch(
      `http://127.0.0.1:${1317 + stage.offset}/cosmos/staking/v1beta1/delegators/` +
        `${bech(scene.sender)}/unbonding_delegations`,
    );
    const { unbonding_responses: leaving } = (await asked.json()) as {
      unbonding_responses: { entries: { completion_time: string }[] }[];
    };
    const freeAt = leaving[0]?.entries[0]?.completion_time ?? "";
    expect(text).toContain(`3 TOKEN${freeAt.slice(0, 19).replace("T", " ")} UTC`);
    const own = await page(`/address/${operator}`);
    expect(own.text).toContain("Validator of this account");
    expect((await page(`/address/${scene.other}`)).text).toContain("This account has no stake.");
  });

  it("show a proposal until it passes, as text whatever it is called", async () => {
    await until(async () => (await page("/proposal/1")).text.includes("Statuspassed"), {
      timeoutMs: 60_000,
      what: "the proposal passes",
    });
    const { text, reply } = await page("/proposal/1");
    expect(reply.text).not.toContain("<img");
    expect(text).toContain('<img src=x onerror=alert("title")>');
    expect(text).toContain("It does nothing: it is a text.");
    // Who delegates votes with the validator.
    expect(text).toContain("yes107 TOKEN100.00 %");
    const list = await page("/proposals?lang=de");
    expect(list.text).toContain("angenommen");
    expect((await page("/proposal/2")).reply.status).toBe(404);
    expect((await page("/proposal/x")).reply.status).toBe(400);
    expect((await page("/proposals?after=%3Cb%3E")).reply.status).toBe(400);
    const parameters = await page("/parameters");
    expect(parameters.text).toContain("voting_period12s");
  });

  it("show where the coins are", async () => {
    const { text } = await page("/supply");
    expect(text).toMatch(/Circulating\d+(\.\d+)? TOKEN/);
    expect(text).toContain("At the burn address0 TOKEN");
  });
});

describe("where is my deposit?", () => {
  it("says that it is final, counts everything that moved, and gives a link to send", async () => {
    const { text } = await page(`/deposit?tx=${scene.internal.hash.slice(2).toUpperCase()}`);
    expect(text).toContain("Carried out: the block is final");
    expect(text).toContain("2/2 · final");
    expect(text).toContain("+0.000000000000000007 TOKEN");
    expect(text).toContain(`/deposit?tx=${scene.internal.hash}`);
  });

  it("says that a failed one moved nothing but the fee, and of an unknown one that it is unknown", async () => {
    const failed = await page(`/deposit?tx=${scene.failed.hash}`);
    expect(failed.text).toContain("failed: nothing but the fee moved");
    expect(failed.text).not.toContain("0.000000000000000003");
    const unknown = await page(`/deposit?tx=${"77".repeat(32)}`);
    expect(unknown.reply.status).toBe(404);
    expect(unknown.text).toMatch(/not in blocks up to \d+; pending: no/);
  });
});
