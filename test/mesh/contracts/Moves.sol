// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// Every way in which native coins move, or only seem to. Each function proves its own effect and
/// then says which kind it was: a receipt with that event shows that the kind really occurred.
contract Moves {
    event Did(string kind);

    Hop public immutable hop;

    constructor(Hop hop_) payable {
        hop = hop_;
    }

    receive() external payable {}

    function wei_(address who) private view returns (uint256) {
        return who.balance;
    }

    /// Paid `depth` frames below the transaction.
    function relay(address payable to, uint256 depth, string calldata kind) external payable {
        uint256 before = wei_(to);
        hop.relay{value: msg.value}(to, depth);
        require(wei_(to) == before + msg.value, "not paid");
        emit Did(kind);
    }

    /// An inner frame pays two levels down and is undone; this contract keeps the coins.
    function catchRevert(address payable to) external payable {
        uint256 before = wei_(to);
        try hop.relayAndRevert{value: msg.value}(to) {
            revert("it did not revert");
        } catch {}
        require(wei_(to) == before, "paid");
        emit Did("inner revert");
    }

    /// An inner frame pays and runs out of gas.
    function catchStarved(address payable to) external payable {
        uint256 before = wei_(to);
        try hop.relayAndBurn{value: msg.value, gas: 120_000}(to) {
            revert("it had enough gas");
        } catch {}
        require(wei_(to) == before, "paid");
        emit Did("inner out of gas");
    }

    /// More than this contract has: the call fails without a frame.
    function overdraw(address payable to) external payable {
        (bool ok,) = to.call{value: address(this).balance + 1}("");
        require(!ok, "it could pay");
        emit Did("overdraw");
    }

    /// A real payment, and around it the calls whose value moves nothing.
    function callsWithoutValue(address payable to) external payable {
        uint256 own = address(this).balance;
        uint256 theirs = wei_(to);
        bool ok;
        (ok,) = address(hop).delegatecall(abi.encodeCall(Hop.nothing, ()));
        require(ok, "delegatecall");
        (ok,) = address(hop).staticcall(abi.encodeCall(Hop.nothing, ()));
        require(ok, "staticcall");
        uint256 amount = msg.value;
        address target = address(hop);
        assembly {
            ok := callcode(gas(), target, amount, 0, 0, 0, 0)
        }
        require(ok, "callcode");
        require(address(this).balance == own, "something moved");
        (ok,) = to.call{value: amount}("");
        require(ok && wei_(to) == theirs + amount, "not paid");
        emit Did("delegatecall, staticcall, callcode");
    }

    /// A payment made by borrowed code: the coins are this contract's, the frame is not a call.
    function payByDelegate(address payable to) external payable {
        uint256 before = wei_(to);
        (bool ok,) = address(hop).delegatecall(abi.encodeCall(Hop.pay, (to, msg.value)));
        require(ok && wei_(to) == before + msg.value, "not paid");
        emit Did("payment inside delegatecall");
    }

    function payMyself() external payable {
        uint256 before = address(this).balance;
        (bool ok,) = address(this).call{value: msg.value}("");
        require(ok && address(this).balance == before, "moved");
        emit Did("inner self-transfer");
    }

    function payPrecompiles() external payable {
        for (uint160 i = 1; i <= 4; i++) {
            uint256 before = wei_(address(i));
            (bool ok,) = address(i).call{value: msg.value / 8}("");
            require(ok && wei_(address(i)) == before + msg.value / 8, "not paid");
        }
        emit Did("precompiles with value");
    }

    /// A pairing of malformed points fails: the value comes back.
    function failPrecompile() external payable {
        uint256 before = wei_(address(8));
        (bool ok,) = address(8).call{value: msg.value, gas: 200_000}(hex"01");
        require(!ok && wei_(address(8)) == before, "it was paid");
        emit Did("failing precompile with value");
    }

    function create() external payable {
        Child child = new Child{value: msg.value}();
        require(wei_(address(child)) == msg.value, "no endowment");
        emit Did("create with endowment");
    }

    function create2(bytes32 salt) external payable {
        Child child = new Child{value: msg.value, salt: salt}();
        require(wei_(address(child)) == msg.value, "no endowment");
        emit Did("create2 with endowment");
    }

    function failingConstructor(address payable to) external payable {
        uint256 before = wei_(to);
        try new Failing{value: msg.value / 2}(to) {
            revert("it was created");
        } catch {}
        try new Failing{value: msg.value / 2, salt: bytes32(uint256(1))}(to) {
            revert("it was created");
        } catch {}
        require(wei_(to) == before, "paid");
        emit Did("failing constructors");
    }

    /// EIP-6780: an old contract pays out and stays.
    function endOld(Child child, address payable heir) external payable {
        uint256 left = wei_(address(child)) + msg.value;
        uint256 before = wei_(heir);
        child.end{value: msg.value}(heir);
        require(wei_(heir) == before + left && address(child).code.length > 0, "not paid");
        emit Did("selfdestruct to another");
    }

    /// EIP-6780: an old contract that names itself keeps all.
    function endOldToItself(Child child) external payable {
        uint256 before = wei_(address(child));
        child.end{value: msg.value}(payable(address(child)));
        require(wei_(address(child)) == before + msg.value, "it burned");
        emit Did("selfdestruct to itself");
    }

    /// Created and destroyed in one transaction, coins to another.
    function endNew(address payable heir) external payable {
        uint256 before = wei_(heir);
        Child child = new Child{value: msg.value}();
        child.end(heir);
        require(wei_(heir) == before + msg.value, "not paid");
        emit Did("new selfdestruct to another");
    }

    /// Created and destroyed in one transaction, coins to itself: they are gone.
    function endNewToItself() external payable {
        Child child = new Child{value: msg.value}();
        child.end(payable(address(child)));
        require(wei_(address(child)) == 0, "it kept them");
        emit Did("new selfdestruct to itself");
    }

    /// Paid after its end and before the transaction's: gone with the contract.
    function payTheDead(address payable heir) external payable {
        Child child = new Child{value: msg.value / 2}();
        child.end(heir);
        (bool ok,) = address(child).call{value: msg.value / 2}("");
        require(ok && wei_(address(child)) == msg.value / 2, "not paid");
        emit Did("payment after selfdestruct");
    }

    /// A destruction that is undone with its frame.
    function undoEnd(address payable heir) external payable {
        uint256 before = wei_(heir);
        try this.endAndRevert{value: msg.value}(heir) {
            revert("it did not revert");
        } catch {}
        require(wei_(heir) == before, "paid");
        emit Did("undone selfdestruct");
    }

    function endAndRevert(address payable heir) external payable {
        new Child{value: msg.value}().end(heir);
        revert("changed my mind");
    }

    /// The whole transaction fails after it paid.
    function fail(address payable to) external payable {
        (bool ok,) = to.call{value: msg.value}("");
        require(ok && false, "always");
    }

    function burnGas() external payable {
        while (true) {}
    }
}

/// One link of a chain of contracts, so that each hop is a frame of its own.
contract Hop {
    Hop public immutable next;

    constructor(Hop next_) {
        next = next_;
    }

    receive() external payable {}

    function nothing() external payable {}

    function pay(address payable to, uint256 amount) public payable {
        (bool ok,) = to.call{value: amount}("");
        require(ok, "payment failed");
    }

    function relay(address payable to, uint256 depth) external payable {
        if (depth > 1) next.relay{value: msg.value}(to, depth - 1);
        else pay(to, msg.value);
    }

    function relayAndRevert(address payable to) external payable {
        next.relay{value: msg.value}(to, 1);
        revert("changed my mind");
    }

    function relayAndBurn(address payable to) external payable {
        next.relay{value: msg.value}(to, 1);
        while (true) {}
    }
}

contract Child {
    constructor() payable {}

    receive() external payable {}

    function end(address payable heir) external payable {
        selfdestruct(heir);
    }
}

/// Pays while it is being created, and is not created after all.
contract Failing {
    constructor(address payable to) payable {
        to.transfer(msg.value);
        revert("changed my mind");
    }
}

/// Leaves everything to an heir while a transaction creates it.
contract Mayfly {
    constructor(address payable heir) payable {
        selfdestruct(heir);
    }
}
