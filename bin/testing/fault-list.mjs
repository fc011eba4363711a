/** Faults of the list in docs/faults.md that tests elsewhere show; `npm run test:faults` runs them. */

const WORKER = "test/integration/withdrawal-worker";
const WATCHER = "test/integration/deposit-watcher";
const RECOVERY = "test/integration/recovery";
const POLICY = "test/integration/policy";
const SIGNERS = "test/unit/withdrawal-worker/signers";

/** By number: the files, and words of the names of the tests that show it. */
export const SHOWN_ELSEWHERE = [
  {
    number: 17,
    name: "a database that was put back from an older copy, or lost, while the chain went on",
    files: [`${RECOVERY}/restored-ledger`, `${WORKER}/release/release`],
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
    files: [`${RECOVERY}/lost-blocks/older-chain`, `${RECOVERY}/second-loss`],
    tests: [
      "gets nothing new signed, is named with what is missing, and comes to what it was",
      "credits a vanished deposit again where it is mined again, at the same place as well",
      "does not let the payment be mined in its place unseen",
    ],
  },
  {
    number: 33,
    name: "a payment that the pool let go",
    files: [`${WORKER}/lane/attempts/sending`],
    tests: [
      "sends again what a restarted node forgot",
      "sends the same bytes until a full pool that let them go takes them again",
    ],
  },
  {
    number: 39,
    name: "somebody else uses the hot wallet's key",
    files: [`${WORKER}/lane/lane`, `${WORKER}/release/theft`, `${WATCHER}/crediting`],
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
    files: [`${WORKER}/lane/lane`, `${WORKER}/lane/attempts/sending`],
    tests: [
      "keeps the slot and pauses when the wallet suddenly cannot pay",
      "waits while the balance is reserved for payments that are not mined yet",
      "waits for funds behind the reserve and lets a smaller one go first",
    ],
  },
  {
    number: 45,
    name: "one key a hundred times at once, with the same body and with another",
    files: [`${WORKER}/api/api`],
    tests: [
      "gives 100 equal requests at once one hold and the same answer",
      "answers 422 to a used key with another body, whichever field differs",
      "lets racing requests for one balance take no more than there is",
    ],
  },
  {
    number: 46,
    name: "an approval is repeated, the policy changes before the signature, everything is switched off",
    files: [
      `${POLICY}/approvals`,
      `${POLICY}/kill-switch`,
      `${POLICY}/payments`,
      `${RECOVERY}/kill-switch`,
    ],
    tests: [
      "moves once when approvals race",
      "is not approved by the key that asked, twice by one key, or after it ended",
      "makes what they said under the former one count no more",
      "takes the nonce back from what the signer's file forbids by the time it is signed",
      "stops a withdrawal in every state, and lets it go on from there",
      "in the signer's own file stops signing though the ledger knows nothing of it",
      "stays as a person left it when a ledger is recovered",
    ],
  },
  {
    number: 47,
    name: "a signer that is late, refuses, or signs something else: other chain, other key, high s",
    files: [SIGNERS, `${POLICY}/payments`],
    tests: [
      "is believed nothing",
      "that falls silent after signing costs a repeat, not a nonce",
      "that does not sign (refuses) is asked again",
      "that says nothing is ended, and the next one starts anew",
      "is not asked again until a person has looked; then its nonce is used",
    ],
  },
  {
    number: 48,
    name: "contracts that say there was a deposit where there was none",
    files: ["test/integration/tokens/deposits", `${WATCHER}/incidents`],
    tests: [
      "deposits on a real chain are all found, and nothing else is credited",
      "of a token whose proxy runs other code are held until a person accepts it",
      "halt when coins come under the name of a token",
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
    number: 50,
    name: "a receiver of webhooks that fails, hangs, refuses, repeats, or points into the own network",
    files: ["test/integration/webhooks/webhooks"],
    tests: [
      "is tried again under the same id, in time that the receiver may choose",
      "that refuses for good, or points elsewhere, is not asked again",
      "that hangs delays nobody else, and holds few connections",
      "gets what a process that died was sending, from the next one",
      "in a private network gets nothing, though it was registered once",
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
    files: ["test/integration/ledger/reconcile/reconcile", "test/integration/ledger/journal"],
    tests: [
      "sees a balance row that does not follow its postings",
      "names a withdrawal whose booked amount is not what the chain paid",
      "the database itself refuses",
    ],
  },
  {
    number: 53,
    name: "one customer's request that the node refuses holds up everybody's",
    files: [
      `${WORKER}/lane/attempts/exits`,
      `${WORKER}/lane/attempts/limits`,
      `${WORKER}/lane/strangers`,
    ],
    tests: [
      "is asked before a nonce is taken: what does not fit with its margin fails at once",
      "of a node that names none: the payment that it refuses gives its nonce up",
      "ends neither the lane nor itself in a circle: the nonce is given up",
      "makes the lane say that it does not move, with the nonce and the node's answer",
      "hide nobody behind them, however many they are and however soon they are due again",
    ],
  },
  {
    number: 54,
    name: "an incident: nothing is credited and nothing is signed; one late node is none",
    files: [`${WATCHER}/incidents`, `${WORKER}/lane/lane`],
    tests: [
      "halt signing as well, until an operator resumes",
      "are not what one late node behind a balancer is",
      "sign nothing while an incident is open, and go on after it",
    ],
  },
  {
    number: 55,
    name: "the hot wallet changes: nothing is stranded, every coin is accounted for",
    files: ["test/integration/wallets/rotation"],
    tests: [
      "strands no request and no coin, and nobody's taking goes unnamed",
      "finishes its own and takes nothing new: others pay what was accepted",
      "is retired when it is empty, or with a word that it is not, and is watched on",
    ],
  },
  {
    number: 56,
    name: "payouts to contracts that burn all their gas, over and over",
    files: [`${WORKER}/lane/slots/code-payouts`],
    tests: [
      "are estimated with the price that is signed, within what the wallet can pay",
      "get nonces behind plain payments, and no more gas at once than their share",
      "that fail on the chain cost what the settings say, and then are rejected by rule",
    ],
  },
  {
    number: 57,
    name: "a payout that nobody mines, is cancelled, or is due too late",
    files: [`${WORKER}/lane/attempts/exits`],
    tests: [
      "is made dearer in time, on the same nonce, and whichever is mined is booked once",
      "is never made dearer than the budgets of a payout and of a day",
      "races every step of the lane: each is paid or cancelled, never both and never neither",
      "ends what has no nonce by then, and cancels what has one",
    ],
  },
  {
    number: 58,
    name: "a foreign outflow, a sweep, an opening balance: the books are clean again by decisions",
    files: [`${RECOVERY}/decisions`],
    tests: [
      "explain a foreign outflow line by line: reconcile is clean again, at tolerance 0",
      "are not needed for a sweep by hand of a deposit address into the hot wallet",
      "release suspense to a customer, and take an opening balance",
      "wait for a second person where two are asked for",
    ],
  },
];
