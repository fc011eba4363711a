/**
 * REST, `abci_query` and the command line over one chain: judged by CosmJS' client and by gRPC.
 */
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import { decodeMessage } from "../../../chain/protobuf/codec.js";
import { JsonWriter } from "../../../chain/protobuf/json.js";
import { createProgram } from "../../../cli/program/program.js";
import { nodeHalted } from "../../../node/mempool/pool-error.js";
import { startRestServer } from "../../../node/rpc/rest/server.js";
import {
  faucet,
  faucetText,
  receiverText,
  nobody,
  chain,
  client,
  base,
  sdkTx,
  sdkHash,
  evmHash,
  send,
  wrap,
  get,
  post,
  call,
  openInterfaces,
  closeInterfaces,
  restOptions,
} from "./interfaces.js";

beforeAll(openInterfaces);
afterAll(closeInterfaces);

describe("CosmJS' StargateClient", () => {
  it("reads chain, accounts and balances", async () => {
    expect(await client.getChainId()).toBe("chain_6940-1");
    expect(await client.getHeight()).toBe(3);
    const balance = await client.getBalance(receiverText, "atoken");
    expect(balance).toEqual({ denom: "atoken", amount: "17" });
    expect(await client.getAllBalances(receiverText)).toEqual([balance]);
    expect(await client.getAllBalances(nobody)).toEqual([]);
    const account = { address: faucetText, pubkey: null, accountNumber: 0n, sequence: 3 };
    expect(await client.getAccount(faucetText)).toEqual(account);
    expect(await client.getAccount(nobody)).toBeNull();
    expect(await client.getSequence(faucetText)).toEqual({ accountNumber: 0n, sequence: 3 });
  });

  it("reads blocks and finds transactions", async () => {
    const block = await client.getBlock(1);
    expect(block.txs.map((tx) => Buffer.from(tx).toString("hex"))).toContain(
      Buffer.from(sdkTx).toString("hex"),
    );
    const tx = await client.getTx(sdkHash);
    expect(tx).toMatchObject({ height: 1, txIndex: 0, code: 0, gasUsed: 21_000n });
    const sender = { key: "transfer.sender", value: faucetText };
    const found = await client.searchTx([sender, { key: "transfer.amount", value: "5atoken" }]);
    expect(found.map(({ height }) => height)).toEqual([1, 3]);
    const byText = await client.searchTx(`transfer.amount='7atoken' AND tx.height=1`);
    expect(byText.map(({ txIndex }) => txIndex)).toEqual([1]);
  });
});

describe("the REST interface", () => {
  it("answers as the SDK's gateway does", async () => {
    const balances = await get(`/cosmos/bank/v1beta1/balances/${receiverText}`);
    expect(balances.body).toEqual({
      balances: [{ denom: "atoken", amount: "17" }],
      pagination: { next_key: null, total: "1" },
    });
    expect(balances.headers.get("x-cosmos-block-height")).toBe("3");
    expect((await get(`/cosmos/auth/v1beta1/accounts/${faucetText}`)).body).toEqual({
      account: {
        "@type": "/cosmos.auth.v1beta1.BaseAccount",
        address: faucetText,
        pub_key: null,
        account_number: "0",
        sequence: "3",
      },
    });
    const total = chain.ports.view.supply(3)?.totalAtoken.toString();
    const coin = { denom: "atoken", amount: total };
    for (const path of ["supply/atoken", "supply/by_denom?denom=atoken"]) {
      expect((await get(`/cosmos/bank/v1beta1/${path}`)).body).toEqual({ amount: coin });
    }
    expect((await get("/cosmos/bank/v1beta1/supply")).body).toMatchObject({ supply: [coin] });
    expect((await get("/cosmos/mint/v1beta1/inflation")).body).toEqual({
      inflation: "0.120000000000000000",
    });
    // Keplr asks for 3,000 proposals, others for all of a list in one page.
    expect(await get("/cosmos/bank/v1beta1/supply?pagination.limit=100000")).toMatchObject({
      status: 200,
      body: { supply: [{ denom: "atoken", amount: total }], pagination: { next_key: null } },
    });
    const supply = { height: "3", total, burned: "0", locked: "0", circulating: total };
    expect((await get("/causeway/supply/v1")).body).toEqual(supply);
  });

  it("serves the SDK's reflection: every type it names exists, every query it names is served", async () => {
    const root = "/cosmos/base/reflection/v1beta1";
    const read = async (path: string) => {
      const { status, body } = await get(`${root}/${path}`);
      expect([path, status]).toEqual([path, 200]);
      return body;
    };
    const { interface_names } = (await read("interfaces")) as { interface_names: string[] };
    const types = chain.queries.types;
    for (const name of interface_names) {
      const found = (await read(`interfaces/${name}/implementations`)) as {
        implementation_message_names: string[];
      };
      expect(found.implementation_message_names.length).toBeGreaterThan(0);
      for (const url of found.implementation_message_names) {
        expect([url, types.findMessage(url.slice(1))?.name]).toEqual([url, url.slice(1)]);
      }
    }
    expect(await read("interfaces/none/implementations")).toEqual({
      implementation_message_names: [],
    });
    expect(await read("app_descriptor/chain")).toEqual({ chain: { id: "chain_6940-1" } });
    expect(await read("app_descriptor/configuration")).toEqual({
      config: { bech32_account_address_prefix: "addr" },
    });
    expect(await read("app_descriptor/authn")).toMatchObject({
      authn: { sign_modes: [{ name: "SIGN_MODE_DIRECT", number: 1 }, { number: 127 }] },
    });
    const { tx } = (await read("app_descriptor/tx_descriptor")) as {
      tx: { fullname: string; msgs: { msg_type_url: string }[] };
    };
    const urls = tx.msgs.map(({ msg_type_url }) => msg_type_url);
    expect(urls).toEqual(
      expect.arrayContaining(["/cosmos.bank.v1beta1.MsgSend", "/cosmos.evm.vm.v1.MsgEthereumTx"]),
    );
    const { codec } = (await read("app_descriptor/codec")) as {
      codec: { interfaces: { fullname: string; interface_implementers: object[] }[] };
    };
    expect(codec.interfaces.map(({ fullname }) => fullname)).toEqual(interface_names);
    const { queries } = (await read("app_descriptor/query_services")) as {
      queries: { query_services: { fullname: string; methods: { full_query_path: string }[] }[] };
    };
    const paths = queries.query_services.flatMap(({ methods }) =>
      methods.map(({ full_query_path }) => full_query_path),
    );
    expect(paths.toSorted()).toEqual(
      chain.queries
        .all()
        .map(({ method }) => method.path)
        .toSorted(),
    );
  });

  it("answers for the height in the header", async () => {
    const path = `/cosmos/bank/v1beta1/balances/${receiverText}/by_denom?denom=atoken`;
    const past = await get(path, { "x-cosmos-block-height": "1" });
    expect(past.body).toEqual({ balance: { denom: "atoken", amount: "12" } });
    expect(past.headers.get("x-cosmos-block-height")).toBe("1");
    const future = await get(path, { "x-cosmos-block-height": "9" });
    expect(future).toMatchObject({ status: 400, body: { code: 3, details: [] } });
  });

  it("refuses in the form of the SDK", async () => {
    const missing = `rpc error: code = NotFound desc = account ${nobody} not found: key not found`;
    expect(await get(`/cosmos/auth/v1beta1/accounts/${nobody}`)).toMatchObject({
      status: 404,
      body: { code: 5, message: missing, details: [] },
    });
    for (const path of [
      "/cosmos/auth/v1beta1/accounts/cosmos1qypqxpq9qcrsszg2pvxq6rs0zqg3yyc5lzv7xu",
      "/cosmos/bank/v1beta1/supply/by_denom",
      "/cosmos/bank/v1beta1/supply?pagination.key=AA==&pagination.offset=1",
      "/cosmos/base/tendermint/v1beta1/blocks/0",
      "/cosmos/base/tendermint/v1beta1/blocks/4",
      "/cosmos/base/tendermint/v1beta1/blocks/x",
      "/cosmos/tx/v1beta1/txs",
      "/cosmos/tx/v1beta1/txs?events=nonsense",
      "/cosmos/tx/v1beta1/txs/nonsense",
      "/cosmos/tx/v1beta1/txs/%zz",
    ]) {
      expect([path, await get(path)]).toMatchObject([path, { status: 400, body: { code: 3 } }]);
    }
    const unknown = await get(`/cosmos/tx/v1beta1/txs/${"AB".repeat(32)}`);
    const text = `tx not found: ${"AB".repeat(32)}`;
    expect(unknown).toMatchObject({ status: 404, body: { code: 5, message: text } });
    for (const path of ["/", "/nope", "/cosmos/authz/v1beta1/grants"]) {
      const message = expect.stringMatching(
        path.includes("authz")
          ? /^Not Implemented: this chain has no x\/authz: /
          : /^Not Implemented$/,
      );
      const body = { code: 12, message, details: [] };
      expect(await get(path)).toMatchObject({ status: 501, body });
    }
    expect(await post("/cosmos/bank/v1beta1/supply", {})).toMatchObject({ status: 501 });
    expect(await post("/cosmos/tx/v1beta1/txs", "{")).toMatchObject({ status: 400 });
    expect(await post("/cosmos/tx/v1beta1/txs", `"${"x".repeat(200_000)}"`)).toMatchObject({
      status: 413,
    });
  });

  it("finds transactions by both generations of filters, with a raw &", async () => {
    const txs = "/cosmos/tx/v1beta1/txs";
    const hashes = async (search: string) => {
      const { body } = await get(`${txs}?${search}`);
      const { tx_responses, total, pagination } = body as {
        tx_responses: { txhash: string; height: string; events: unknown[] }[];
        total: string;
        pagination: { total: string };
      };
      expect(pagination.total).toBe(total);
      expect(tx_responses.every(({ events }) => events.length > 0)).toBe(true);
      return { total, heights: tx_responses.map(({ height }) => height) };
    };
    const sender = `transfer.sender='${faucetText}'`;
    expect(await hashes(`events=${sender}`)).toEqual({ total: "3", heights: ["1", "1", "3"] });
    const both = { total: "2", heights: ["1", "3"] };
    expect(await hashes(`events=${sender}&transfer.amount='5atoken'`)).toEqual(both);
    expect(await hashes(`events=${sender}&events=transfer.amount='5atoken'`)).toEqual(both);
    const query = encodeURIComponent(`${sender} AND transfer.amount='5atoken'`);
    expect(await hashes(`query=${query}`)).toEqual(both);
    const newest = { total: "3", heights: ["3", "1"] };
    expect(await hashes(`events=${sender}&order_by=ORDER_BY_DESC&limit=2`)).toEqual(newest);
    const old = `events=${sender}&pagination.offset=2&pagination.limit=2&order_by=2`;
    expect(await hashes(old)).toEqual({ total: "3", heights: ["1"] });
    expect(await hashes(`events=${sender}&page=2&limit=2`)).toEqual({ total: "3", heights: ["3"] });
    const all = { total: "3", heights: ["1", "1", "3"] };
    for (const most of ["limit=100000", "pagination.limit=1001"]) {
      expect(await hashes(`events=${sender}&${most}`)).toEqual(all);
    }
    expect(await hashes("events=message.module='bank'")).toMatchObject({ total: "3" });
  });

  it("shows a transaction by either hash", async () => {
    const { body } = await get(`/cosmos/tx/v1beta1/txs/${sdkHash}`);
    expect(body).toMatchObject({
      tx: {
        body: {
          messages: [
            {
              "@type": "/cosmos.evm.vm.v1.MsgEthereumTx",
              from: Buffer.from(faucet.address.slice(2), "hex").toString("base64"),
              raw: expect.stringMatching(/^0x[0-9a-f]+$/),
            },
          ],
          extension_options: [{ "@type": "/cosmos.evm.vm.v1.ExtensionOptionsEthereumTx" }],
        },
        auth_info: {
          signer_infos: [],
          fee: { amount: [{ denom: "atoken", amount: "525000000000" }], gas_limit: "21000" },
        },
        signatures: [],
      },
      tx_response: {
        height: "1",
        txhash: sdkHash,
        code: 0,
        gas_used: "21000",
        tx: { "@type": "/cosmos.tx.v1beta1.Tx" },
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      },
    });
    for (const hash of [sdkHash.toLowerCase(), evmHash, `0x${sdkHash}`]) {
      expect((await get(`/cosmos/tx/v1beta1/txs/${hash}`)).body).toEqual(body);
    }
    const block = await get(
      "/cosmos/tx/v1beta1/txs/block/1?pagination.limit=1&pagination.offset=1",
    );
    expect(block.body).toMatchObject({ txs: [{}], pagination: { total: "2" } });
  });

  it("takes transactions, and decodes and encodes them", async () => {
    const tx_bytes = Buffer.from(sdkTx).toString("base64");
    const decoded = await post("/cosmos/tx/v1beta1/decode", { tx_bytes });
    const { tx } = decoded.body as { tx: unknown };
    expect(await post("/cosmos/tx/v1beta1/encode", { tx })).toEqual({
      status: 200,
      body: { tx_bytes },
    });
    const next = Buffer.from(wrap(await send(3, 1n))).toString("base64");
    const mode = "BROADCAST_MODE_SYNC";
    const taken = await post("/cosmos/tx/v1beta1/txs", { tx_bytes: next, mode });
    expect(taken).toMatchObject({ status: 200, body: { tx_response: { code: 0, height: "0" } } });
    const { txhash } = (taken.body as { tx_response: { txhash: string } }).tx_response;
    const again = await post("/cosmos/tx/v1beta1/txs", { tx_bytes: next, mode });
    const known = { code: 19, codespace: "sdk", txhash };
    expect(again).toMatchObject({ status: 200, body: { tx_response: known } });
    // What a block has is known as well; only other bytes of its sequence are stale.
    const mined = await post("/cosmos/tx/v1beta1/txs", { tx_bytes, mode });
    expect(mined).toMatchObject({ status: 200, body: { tx_response: { code: 19 } } });
    const other = Buffer.from(wrap(await send(0, 99n))).toString("base64");
    const stale = await post("/cosmos/tx/v1beta1/txs", { tx_bytes: other, mode });
    expect(stale).toMatchObject({ status: 200, body: { tx_response: { code: 3 } } });
    const garbage = await post("/cosmos/tx/v1beta1/txs", { tx_bytes: "AAAA", mode });
    expect(garbage).toMatchObject({ status: 200, body: { tx_response: { code: 2 } } });
  });

  it("blames no transaction for a node that takes none", async () => {
    const next = wrap(await send(3, 1n));
    const halted = nodeHalted("its disk is full");
    const submit = jest.spyOn(chain.ports, "submit").mockResolvedValue(halted);
    const { message } = halted;
    expect(
      await post("/cosmos/tx/v1beta1/txs", {
        tx_bytes: Buffer.from(next).toString("base64"),
        mode: "BROADCAST_MODE_SYNC",
      }),
    ).toEqual({ status: 503, body: { code: 14, message, details: [] } });
    const request = new ProtoWriter().bytes(1, next).integer(2, 2).finish();
    await expect(call("/cosmos.tx.v1beta1.Service/BroadcastTx", request)).rejects.toMatchObject({
      code: 14,
      details: message,
    });
    submit.mockRestore();
  });

  it("lets only listed pages read, and shows its routes itself", async () => {
    const path = "/cosmos/bank/v1beta1/params";
    const allowed = await get(path, { Origin: "https://wallet.example" });
    expect(allowed.headers.get("access-control-allow-origin")).toBe("https://wallet.example");
    const other = await get(path, { Origin: "https://evil.example" });
    expect(other.headers.get("access-control-allow-origin")).toBeNull();
    const page = await fetch(`${base}/swagger/`);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(await page.text()).not.toMatch(/https?:\/\//);
    const { body } = await get("/swagger/openapi.json");
    const { paths } = body as { paths: Record<string, unknown> };
    const routes = chain.queries.all().flatMap(({ method }) => method.routes);
    expect(Object.keys(paths).length).toBeGreaterThan(40);
    expect(routes.every(({ template }) => template.replaceAll("=**", "") in paths)).toBe(true);
  });

  it("reads no body of more values than a transaction has", async () => {
    const roomy = await startRestServer({ ...restOptions(), maxBodyBytes: 1_000_000 });
    const encode = `http://127.0.0.1:${roomy.address.port}/cosmos/tx/v1beta1/encode`;
    const reply = async (count: number) => {
      const body = JSON.stringify({ tx: { signatures: Array(count).fill("") } });
      const answer = await fetch(encode, { method: "POST", body });
      return [answer.status, (await answer.text()).slice(0, 80)];
    };
    expect(await reply(60_000)).toMatchObject([200, expect.stringContaining("tx_bytes")]);
    expect(await reply(70_001)).toEqual([
      400,
      '{"code":3,"message":"the body has too many values","details":[]}',
    ]);
    await roomy.stop();
  });

  it("answers who asks too often with 429", async () => {
    const limited = await startRestServer({ ...restOptions(), requestsPerSecond: 1 });
    const origin = `http://127.0.0.1:${limited.address.port}`;
    const path = "/cosmos/bank/v1beta1/params";
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => get(path, {}, origin)));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]?.body).toMatchObject({ code: 8, details: [] });
    await limited.stop();
  });
});

describe("one registry", () => {
  it("answers the same on every face", async () => {
    const writer = new JsonWriter(chain.queries.types);
    const height = { "x-cosmos-block-height": "3" };
    let count = 0;
    for (const served of chain.queries.all()) {
      const { method, output } = served;
      const route = method.routes.find(
        ({ verb, template }) => verb === "GET" && !/\{/.test(template),
      );
      if (route === undefined || /GetTxsEvent|ABCIQuery|EthCall|EstimateGas/.test(method.name))
        continue;
      const expected = await call(method.path, undefined, height).catch((error: unknown) => error);
      const shown = await get(route.template, height);
      if (expected instanceof Error) {
        expect([method.path, shown.status]).not.toEqual([method.path, 200]);
        continue;
      }
      const { bytes } = expected as { bytes: Buffer };
      const params = { path: method.path, data: "", height: "3", prove: false };
      const reply = await fetch(chain.url, {
        method: "POST",
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "abci_query", params }),
      });
      const { result } = (await reply.json()) as { result: { response: { value: string } } };
      expect([method.path, result.response.value ?? ""]).toEqual([
        method.path,
        bytes.toString("base64"),
      ]);
      const json: unknown = JSON.parse(writer.text(output, decodeMessage(output, bytes)));
      expect([method.path, shown.body]).toEqual([method.path, json]);
      count += 1;
    }
    expect(count).toBeGreaterThan(20);
  });

  it("is asked by the command line with the SDK's flags", async () => {
    const run = async (...words: readonly string[]) => {
      const lines: string[] = [];
      let code = 0;
      const program = createProgram({
        version: "0",
        env: {},
        signal: new AbortController().signal,
        print: (line) => lines.push(line),
        warn: (line) => lines.push(line),
        setExitCode: (given) => {
          code = given;
        },
      });
      const node = chain.url.replace("http:", "tcp:");
      await program.parseAsync(["node", "causeway", "query", ...words, "--node", node]);
      expect(code).toBe(0);
      return lines;
    };
    const json = async (...words: readonly string[]): Promise<unknown> =>
      JSON.parse((await run(...words, "--output", "json")).join(""));
    expect(await json("bank", "balances", receiverText)).toEqual(
      (await get(`/cosmos/bank/v1beta1/balances/${receiverText}`)).body,
    );
    expect(
      await json("bank", "balances", receiverText, "--denom", "atoken", "--height", "1"),
    ).toEqual({
      balance: { denom: "atoken", amount: "12" },
    });
    expect(await json("tx", sdkHash)).toMatchObject({ txhash: sdkHash, code: 0 });
    const filter = `transfer.sender=${faucetText}&transfer.amount=5atoken`;
    expect(await json("txs", "--events", filter, "--limit", "1")).toMatchObject({
      total_count: "2",
      count: "1",
      page_number: "1",
      page_total: "2",
      limit: "1",
      txs: [{ txhash: sdkHash }],
    });
    expect(await json("txs", "--query", "tx.height=3")).toMatchObject({ total_count: "1" });
    expect(await json("block", "2")).toMatchObject({ block: { header: { height: "2" } } });
    expect(await json("supply")).toEqual((await get("/causeway/supply/v1")).body);
    const total = chain.ports.view.supply(3)?.totalAtoken;
    const text = ["amount:", "  denom: atoken", `  amount: "${total}"`];
    expect(await run("bank", "total", "--denom", "atoken")).toEqual(text);
    await expect(run("tx", "AB".repeat(32))).rejects.toThrow(/tx not found/);
    await expect(run("bank", "balances", "nonsense")).rejects.toThrow(/invalid address/);
    await expect(run("txs", "--events", "nonsense")).rejects.toThrow(/form/);
  });
});
