/** The query language, by the tables of CometBFT's own tests (libs/pubsub/query, v0.38.17). */
import { describe, expect, it, jest } from "@jest/globals";
import { parseQuery } from "../../../../node/rpc/comet/search/query.js";
import { matchesQuery } from "../../../../node/rpc/comet/search/query-match.js";

/** CometBFT's TestParseValid. */
const VALID = [
  "tm.events.type='NewBlock'",
  "tm.events.type = 'NewBlock'",
  "tm.events.name = ''",
  "tm.events.type='TIME'",
  "tm.events.type='DATE'",
  "tm.events.type='='",
  "tm.events.type='NewBlock' AND abci.account.name='Igor'",
  "abci.account.name CONTAINS 'Igor'",
  "tx.date > DATE 2013-05-03",
  "tx.date < DATE 2013-05-03",
  "tx.date <= DATE 2013-05-03",
  "tx.date >= DATE 2013-05-03",
  "tx.date > TIME 2013-05-03T14:45:00+07:00",
  "tx.date < TIME 2013-05-03T14:45:00-02:00",
  "tx.date <= TIME 2013-05-03T14:45:00Z",
  "tx.date >= TIME 2013-05-03T14:45:00Z",
  "account.balance=100",
  "account.balance >= 200",
  "slashing.amount EXISTS",
  "slashing.amount EXISTS AND account.balance=100",
  "account.balance=100 AND slashing.amount EXISTS",
  "slashing EXISTS",
  "hash='136E18F7E4C348B780CF873A0BF43922E5BAFA63'",
  "cosm-wasm.transfer_amount=100",
];

const INVALID = [
  "tm.events.type='TIME",
  "tm.events.type=TIME'",
  "tm.events.type==",
  "tm.events.type=NewBlock",
  ">==",
  "tm.events.type 'NewBlock' =",
  "tm.events.type>'NewBlock'",
  "",
  "=",
  "='NewBlock'",
  "tm.events.type=",
  "tm.events.typeNewBlock",
  "tm.events.type'NewBlock'",
  "'NewBlock'",
  "NewBlock",
  "tm.events.type='NewBlock' AND",
  "tm.events.type='NewBlock' AN",
  "tm.events.type='NewBlock' AN tm.events.type='NewBlockHeader'",
  "AND tm.events.type='NewBlock' ",
  "tx.date >= DAT 2013-05-03",
  "tx.date <= DATE2013-05-03",
  "tx.date <= DATE -05-03",
  "tx.date >= DATE 20130503",
  "tx.date >= DATE 2013+01-03",
  "tx.date >= DATE 0013-01-03",
  "tx.date >= DATE 2013-31-03",
  "tx.date >= DATE 2013-01-83",
  "tx.date >= TIME2013-05-03T14:45:00Z",
  "tx.date = IME 2013-05-03T14:45:00Z",
  "tx.date = TIME 2013-05-:45:00Z",
  "tx.date >= TIME 2013-05-03T14:45:00",
  "tx.date >= TIME 0013-00-00T14:45:00Z",
  "tx.date >= TIME 2013+05=03T14:45:00Z",
  "tx.date >= TIME 2021-01-01T34:56:78Z",
  "account.balance >= -300",
  "account.balance >>= 400",
  "account.balance=33.22.1",
  "hash=136E18F7E4C348B780CF873A0BF43922E5BAFA63",
];

/** `type|attribute=value|...`, as CometBFT's tests write events. */
function events(...templates: readonly string[]): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const template of templates) {
    const [type = "", ...attributes] = template.split("|");
    for (const attribute of attributes) {
      const at = attribute.indexOf("=");
      const key = `${type}.${attribute.slice(0, at)}`;
      values.set(key, [...(values.get(key) ?? []), attribute.slice(at + 1)]);
    }
  }
  return values;
}

const API = events(
  "tm|event=Tx|hash=XYZ|height=5",
  "rewards.withdraw|address=AddrA|address=AddrB|source=SrcX|source=SrcY|amount=100|amount=45",
  "transfer|sender=AddrC|recipient=AddrD|amount=160",
);
const BIG = events(
  "big|value=99999999999999999999|floatvalue=99999999999999999999.10",
  "big2|value=18446744073709551615|floatvalue=18446744073709551615.6",
);

/** CometBFT's TestCompiledMatches and TestBigNumbers. */
const MATCHES: readonly (readonly [string, Map<string, string[]>, boolean])[] = [
  ["tm.events.type='NewBlock'", events("tm|events.type=NewBlock"), true],
  ["tx.gas > 7", events("tx|gas=8"), true],
  ["transfer.amount > 7", events("transfer|amount=8stake"), true],
  ["transfer.amount > 7", events("transfer|amount=8.045"), true],
  ["transfer.amount > 7.043", events("transfer|amount=8.045stake"), true],
  ["transfer.amount > 8.045", events("transfer|amount=8.045stake"), false],
  ["tx.gas > 7 AND tx.gas < 9", events("tx|gas=8"), true],
  ["body.weight >= 3.5", events("body|weight=3.5"), true],
  ["account.balance < 1000.0", events("account|balance=900"), true],
  ["apples.kg <= 4", events("apples|kg=4.0"), true],
  ["body.weight >= 4.5", events("body|weight=4.5"), true],
  ["oranges.kg < 4 AND watermellons.kg > 10", events("oranges|kg=3", "watermellons|kg=12"), true],
  ["peaches.kg < 4", events("peaches|kg=5"), false],
  ["tx.date > DATE 2017-01-01", events("tx|date=2026-11-20"), true],
  ["tx.date = DATE 2017-01-01", events("tx|date=2017-01-01"), true],
  ["tx.date = DATE 2018-01-01", events("tx|date=2017-01-01"), false],
  ["tx.time >= TIME 2013-05-03T14:45:00Z", events("tx|time=2026-11-20T10:00:00Z"), true],
  ["tx.time = TIME 2013-05-03T14:45:00Z", events("tx|time=2018-05-03T14:45:00Z"), false],
  ["tx.time = TIME 2018-05-03T16:45:00+02:00", events("tx|time=2018-05-03T14:45:00Z"), true],
  ["abci.owner.name CONTAINS 'Igor'", events("abci|owner.name=Igor|owner.name=Ivan"), true],
  ["abci.owner.name CONTAINS 'Igor'", events("abci|owner.name=Pavel|owner.name=Ivan"), false],
  ["abci.owner.name = 'Ivan'", events("abci|owner.name=Igor|owner.name=Ivan"), true],
  [
    "abci.owner.name = 'Ivan' AND abci.owner.name = 'Igor'",
    events("abci|owner.name=Igor|owner.name=Ivan"),
    true,
  ],
  [
    "abci.owner.name = 'Ivan' AND abci.owner.name = 'John'",
    events("abci|owner.name=Igor|owner.name=Ivan"),
    false,
  ],
  [
    "tm.events.type='NewHeader' AND app.name = 'fuzzed'",
    events("tm|events.type=NewBlock", "app|name=fuzzed"),
    false,
  ],
  ["slash EXISTS", events("slash|reason=missing_signature|power=6000"), true],
  ["slash EXISTS", events("transfer|recipient=a|sender=b"), false],
  [
    "slash.reason EXISTS AND slash.power > 1000",
    events("slash|reason=missing_signature|power=6000"),
    true,
  ],
  [
    "slash.reason EXISTS AND slash.power > 1000",
    events("slash|reason=missing_signature|power=500"),
    false,
  ],
  ["tm.event = 'Tx' AND rewards.withdraw.address = 'AddrA'", API, true],
  [
    "tm.event = 'Tx' AND rewards.withdraw.address = 'AddrA' AND rewards.withdraw.source = 'SrcY'",
    API,
    true,
  ],
  ["tm.event = 'Tx' AND transfer.sender = 'AddrA'", API, false],
  ["tm.event = 'Tx' AND transfer.sender = 'AddrC'", API, true],
  ["tm.event = 'Tx' AND rewards.withdraw.source = 'W'", API, false],
  ["big.value >= 99999999999999999999", BIG, true],
  ["big.value > 99999999999999999998", BIG, true],
  ["big.value > 99999999999999999999", BIG, false],
  ["big2.value <= 18446744073709551615", BIG, true],
  ["big.floatvalue >= 99999999999999999999", BIG, true],
  ["big.floatvalue > 99999999999999999998.10", BIG, true],
  ["big2.floatvalue <= 18446744073709551615.6", BIG, true],
  ["big2.floatvalue >= 12.5", BIG, true],
  ["big2.floatvalue < 18446744073709551615.5", BIG, false],
];

describe("the query language", () => {
  it("takes what CometBFT takes, and equal queries have one spelling", () => {
    for (const text of VALID) {
      const { canonical } = parseQuery(text);
      expect([text, parseQuery(canonical).canonical]).toEqual([text, canonical]);
    }
  });

  it("refuses what CometBFT refuses", () => {
    for (const text of INVALID) {
      expect(() => {
        throw new Error(`${text} was taken as ${parseQuery(text).canonical}`);
      }).toThrow(/failed to parse query: offset \d+/);
    }
  });

  it("matches events as CometBFT does, numbers of any size exactly", () => {
    for (const [text, values, expected] of MATCHES) {
      expect([text, matchesQuery(parseQuery(text), values)]).toEqual([text, expected]);
    }
  });

  it("looks through all keys of an event only where its type alone could match", () => {
    const values = new Map(API);
    const keys = jest.spyOn(values, "keys");
    for (const text of ["transfer.recipient='x'", "transfer.amount > 200", "rewards.withdraw=1"]) {
      expect(matchesQuery(parseQuery(text), values)).toBe(false);
    }
    expect(keys).not.toHaveBeenCalled();
    for (const text of ["transfer EXISTS", "transfer=''", "rewards.withdraw CONTAINS ''"]) {
      expect([text, matchesQuery(parseQuery(text), values)]).toEqual([text, true]);
    }
  });

  it("takes & for AND, as the specification writes it, but not inside of a string", () => {
    const text = "transfer.recipient='a&b'&transfer.amount>5 & message.module='bank'";
    expect(parseQuery(text).canonical).toBe(
      "transfer.recipient = 'a&b' AND transfer.amount > 5 AND message.module = 'bank'",
    );
    expect(() => parseQuery("a.b='c'&&d.e='f'")).toThrow(/offset 8/);
  });

  it("takes 512 characters and not one more", () => {
    const text = `a.b='${"x".repeat(506)}'`;
    expect(text).toHaveLength(512);
    expect(parseQuery(text).conditions).toHaveLength(1);
    expect(() => parseQuery(`${text} `)).toThrow("maximum query length exceeded");
  });
});
