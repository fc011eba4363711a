/** Faults of the list in docs/faults.md that tests elsewhere show; `npm run test:faults` runs them. */

const WORKER = "test/integration/withdrawal-worker";
const WATCHER = "test/integration/deposit-watcher";
const RECOVERY = "test/integration/recovery";

/** By number: the files, and words of the names of the tests that show it. */
export const SHOWN_ELSEWHERE = [
  {
    number: 17,
    name: "a database that was put back from an older copy, or lost, while the chain went on",
    files: [`${RECOVERY}/restored-ledger`, `${WORKER}/release`],
    tests: [
      "is closed, recovered from home and chain, and pays nothing a second time",
      "freezes what waited in the backup and was paid behind it, and settles a taken slot",
      "gives out and pays nothing again; all that the chain proves comes back",
      "after a restored backup names the unknown payments and pays none of them twice",
    ],
  },
  {
    number: 20,
    name: "a chain that came back without its newest blocks",
    files: [`${RECOVERY}/older-chain`, `${RECOVERY}/second-loss`],
    tests: [
      "gets nothing new signed, is named with what is missing, and comes to what it was",
      "credits a vanished deposit again where it is mined again, at the same place as well",
      "does not let the payment be mined in its place unseen",
    ],
  },
  {
    number: 33,
    name: "a payment that the pool let go",
    files: [`${WORKER}/lane`],
    tests: [
      "sends again what a restarted node forgot",
      "sends the same bytes until a full pool that let them go takes them again",
    ],
  },
  {
    number: 39,
    name: "somebody else uses the hot wallet's key",
    files: [`${WORKER}/lane`, `${WORKER}/release`, `${WATCHER}/crediting`],
    tests: [
      "freeze signing when the chain knows a nonce that the ledger never gave",
      "freeze a payment whose nonce a foreign transaction took, and never pay it again",
      "freeze signing when a foreign transaction sits in the pool at our nonce",
      "keeps signing frozen until each of its transactions is acknowledged by its hash",
      "freezes signing at an outflow nobody asked for, and keeps crediting",
    ],
  },
  {
    number: 40,
    name: "the hot wallet is drained in the middle of a batch",
    files: [`${WORKER}/lane`],
    tests: [
      "keeps the slot and pauses when the wallet suddenly cannot pay",
      "waits while the balance is reserved for payments that are not mined yet",
      "waits for funds behind the reserve and lets a smaller one go first",
    ],
  },
  {
    number: 45,
    name: "one key a hundred times at once, with the same body and with another",
    files: [`${WORKER}/api`],
    tests: [
      "gives 100 equal requests at once one hold and the same answer",
      "answers 422 to a used key with another body, whichever field differs",
      "lets racing requests for one balance take no more than there is",
    ],
  },
  {
    number: 49,
    name: "coins that no transaction sent: genesis, rewards",
    files: ["test/unit/deposit-watcher/deposit-match", `${WATCHER}/crediting`],
    tests: [
      "starts with opening capital, and what nobody announced goes to suspense",
      "sends coins that nobody paid to suspense: minted ones, and everything in genesis",
    ],
  },
  {
    number: 51,
    name: "the past of an address is booked while new blocks come",
    files: [`${WATCHER}/crediting`],
    tests: [
      "credits every payment mined after the registration and books every earlier one to suspense",
      "books the same whether it watched live, caught up, restarted or ran twice at once",
    ],
  },
  {
    number: 52,
    name: "a row of the ledger that was tampered with is named",
    files: ["test/integration/ledger/reconcile", "test/integration/ledger/journal"],
    tests: [
      "sees a balance row that does not follow its postings",
      "names a withdrawal whose booked amount is not what the chain paid",
      "the database itself refuses",
    ],
  },
];
