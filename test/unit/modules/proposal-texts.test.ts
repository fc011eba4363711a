/**
 * Words of proposals, as x/gov looks at them from version 2 of the rules on. What metadata say is what
 * Go's `encoding/json` reads into `ProposalMetadata` (SDK 0.54.3, x/gov `types/metadata.go`): the
 * table's verdicts are those of a Go program with that struct.
 */
import { describe, expect, it } from "@jest/globals";
import { toBech32 } from "../../../chain/address.js";
import type { ProtoMessage } from "../../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../../chain/cosmos/message-schemas.js";
import { present } from "../../../chain/errors.js";
import { Proposals } from "../../../node/modules/gov/proposal-record.js";
import { handlerOf } from "../../../node/modules/message-router.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const ALICE = accountAt(20);

function genesisOf(version: 1 | 2) {
  const { appVersion: _newest, ...first } = stakedGenesis([100, 50]);
  return { ...first, appVersion: version };
}

/** Code and codespace of a message's refusal; undefined where it is taken. */
function refusal(version: 1 | 2, name: string, message: ProtoMessage) {
  const chain = new ModuleChain(genesisOf(version));
  chain.mint(ALICE, 1_000n);
  const typeUrl = `/cosmos.gov.${name}`;
  const schema = present(schemaOf(typeUrl), name);
  const failure = chain.run((context) => {
    handlerOf({ typeUrl, schema, message })?.run(message, {
      ...context,
      signer: ALICE,
      isBlocked: () => false,
      useGas: () => undefined,
    });
  });
  if (failure === undefined) expect(new Proposals(chain.state).lastId).toBe(1n);
  return failure && [failure.fault.code, failure.fault.codespace, failure.fault.log];
}

function proposal(texts: ProtoMessage): ProtoMessage {
  const common = { messages: [], initial_deposit: [], proposer: toBech32(ALICE) };
  return { ...common, title: "Words", summary: "More", metadata: "m", expedited: false, ...texts };
}

const submit = (version: 1 | 2, texts: ProtoMessage) =>
  refusal(version, "v1.MsgSubmitProposal", proposal(texts));

describe("metadata of a proposal", () => {
  it.each([
    ["words", true],
    ["ipfs://CID", true],
    ["12", true],
    ['"Words"', true],
    ["[]", true],
    ["{", true],
    ['{"title":"Words","summary":"More"}', true],
    ['{"title":"Words","summary":"More","authors":["a",null],"other":{"a":[1]}}', true],
    [' {"TITLE":"Words","ſummary":"More"}\n', true],
    ['{"title":"Words","summary":"More","summary":"More"}', true],
    // Of another kind than the struct has: not the recommended form, and so ignored.
    ['{"title":1,"summary":"x"}', true],
    ['{"title":"x","authors":"a"}', true],
    ['{"title":"x","authors":[1]}', true],
    ['{"title":"x","details":{}}', true],
    ['{"title":"x","proposal_forum_url":[]}', true],
    ['{"title":"x","vote_option_context":true}', true],
    ["null", false],
    ["{}", false],
    ['{"title":"Words"}', false],
    ['{"summary":"More"}', false],
    ['{"title":"Other","summary":"More"}', false],
    ['{"title":"Words","summary":"Other"}', false],
    ['{"title":null,"summary":"More"}', false],
    ['{"title":"Words","Title":"Other","summary":"More"}', false],
    ['{"title":"words","summary":"More"}', false],
  ])("%s may stand beside title and summary: %s", (metadata, isTaken) => {
    const found = submit(2, { metadata });
    if (isTaken) expect(found).toBeUndefined();
    else expect(found?.slice(0, 2)).toEqual([5, "gov"]);
    // Chains of the first version go on without the rule.
    expect(submit(1, { metadata })).toBeUndefined();
  });

  it("are refused in the SDK's words, and where they are too long with that", () => {
    expect(submit(2, { metadata: '{"title":"Other"}' })).toEqual([
      5,
      "gov",
      "metadata title 'Other' must equal proposal title 'Words': invalid proposal content",
    ]);
    const long = `{"title":"Other","details":"${"d".repeat(300)}"}`;
    expect(submit(2, { metadata: long })?.slice(0, 2)).toEqual([15, "gov"]);
    expect(submit(2, { metadata: '{"title":"Words","summary":"x"}' })?.[2]).toBe(
      "metadata summary 'x' must equal proposal summary 'More': invalid proposal content",
    );
  });
});

describe("lengths of texts", () => {
  it("are counted in bytes, as Go's are", () => {
    const wide = "é".repeat(128);
    expect(submit(1, { title: wide })).toBeUndefined();
    expect(submit(2, { title: wide })?.slice(0, 2)).toEqual([15, "gov"]);
    expect(submit(2, { metadata: wide })?.slice(0, 2)).toEqual([15, "gov"]);
    expect(submit(2, { title: "é".repeat(127) })).toBeUndefined();
    expect(submit(2, { summary: "s".repeat(10_200) })).toBeUndefined();
    expect(submit(2, { summary: "s".repeat(10_201) })).toEqual([
      22,
      "gov",
      "got summary with length 10201: summary too long",
    ]);
    expect(submit(1, { summary: "s".repeat(10_201) })?.slice(0, 2)).toEqual([15, "gov"]);
  });
});

describe("a content of v1beta1", () => {
  const content = (title: string, description: string) => {
    const typeUrl = "/cosmos.gov.v1beta1.TextProposal";
    const schema = present(schemaOf(typeUrl), typeUrl);
    return {
      content: { typeUrl, schema, message: { title, description } },
      initial_deposit: [],
      proposer: toBech32(ALICE),
    };
  };

  it.each([
    ["   ", "More", "proposal title cannot be blank"],
    ["t".repeat(141), "More", "proposal title is longer than max length of 140"],
    ["Words", "", "proposal description cannot be blank"],
    ["Words", "d".repeat(10_001), "proposal description is longer than max length of 10000"],
  ])("has the SDK's bounds (%#)", (title, description, words) => {
    const found = refusal(2, "v1beta1.MsgSubmitProposal", content(title, description));
    expect(found).toEqual([5, "gov", `${words}: invalid proposal content`]);
  });

  it("may have 140 characters of title and 10,000 of description", () => {
    const widest = content("t".repeat(140), "d".repeat(10_000));
    expect(refusal(2, "v1beta1.MsgSubmitProposal", widest)).toBeUndefined();
  });
});
