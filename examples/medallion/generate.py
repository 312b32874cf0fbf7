#!/usr/bin/env python3
"""Makes the sample data of this project: change events of a small shop, in three batches.

The first batch is landed; the others wait under later/. They hold inserts, updates, deletes, late
events (an old sequence number in a later batch), repeated events and rows that violate the
expectations. Deterministic: a linear congruential generator, no library state.
"""
import datetime
import json
import pathlib

ROOT = pathlib.Path(__file__).parent
TIERS = ["bronze", "silver", "gold"]
NAMES = ["Ada", "Boris", "Chloe", "Deniz", "Emil", "Farah", "Goran", "Hana", "Ines", "Jonas"]
DAY = datetime.date(2026, 1, 1)


class Random:
    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


class Shop:
    def __init__(self):
        self.random, self.lsn = Random(20260101), 0
        self.customers, self.orders = {}, {}

    def event(self, op, before, after):
        self.lsn += 1
        clock = datetime.datetime(2026, 1, 1, 8) + datetime.timedelta(seconds=37 * self.lsn)
        return {"op": op, "lsn": self.lsn, "ts": clock.isoformat(sep=" "), "before": before, "after": after}

    def put(self, table, key, row):
        before = table.get(row[key])
        table[row[key]] = row
        return self.event("u" if before else "c", before, row)

    def remove(self, table, key):
        return self.event("d", table.pop(key), None)

    def customer(self, number):
        return {"customer_id": number, "name": "%s %d" % (NAMES[number % 10], number), "tier": TIERS[self.random.below(3)]}

    def order(self, number, day):
        return {"order_id": number, "customer_id": 1 + self.random.below(22), "order_date": str(day),
                "status": "open", "amount": "%d.%02d" % (5 + self.random.below(195), self.random.below(100))}


def write(path, events):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(e) + "\n" for e in events))


def main():
    shop = Shop()
    customers = [shop.put(shop.customers, "customer_id", shop.customer(n)) for n in range(1, 21)]
    orders = [shop.put(shop.orders, "order_id", shop.order(n, DAY + datetime.timedelta(days=n % 5))) for n in range(1, 201)]
    for n in range(1, 201, 3):
        orders.append(shop.put(shop.orders, "order_id", dict(shop.orders[n], status="paid")))
    bad = dict(shop.order(900, DAY), amount="-3.00")
    orders.append(shop.event("c", None, bad))
    late = orders.pop(205)  # this event will arrive with the next batch
    write(ROOT / "landing/customers/batch-1.jsonl", customers)
    write(ROOT / "landing/orders/batch-1.jsonl", orders)

    # Ten changed orders, a customer in a new tier, one without a known tier, and the late event.
    orders = [late]
    for n in range(2, 20, 3):
        orders.append(shop.put(shop.orders, "order_id", dict(shop.orders[n], status="paid")))
    orders.append(shop.put(shop.orders, "order_id", dict(shop.orders[50], amount="999.00")))
    orders.append(shop.put(shop.orders, "order_id", dict(shop.orders[51], status="cancelled")))
    orders.append(shop.remove(shop.orders, 52))
    customers = [shop.put(shop.customers, "customer_id", dict(shop.customers[3], tier="gold")),
                 shop.event("c", None, dict(shop.customer(40), tier="platinum"))]
    write(ROOT / "later/customers/batch-2.jsonl", customers)
    write(ROOT / "later/orders/batch-2.jsonl", orders)

    # A new day, a customer who leaves, one who comes back, and a file that repeats old events.
    orders += [shop.put(shop.orders, "order_id", shop.order(n, DAY + datetime.timedelta(days=5))) for n in range(201, 231)]
    customers = [shop.remove(shop.customers, 7), shop.put(shop.customers, "customer_id", shop.customer(21)),
                 shop.put(shop.customers, "customer_id", shop.customer(7))]
    write(ROOT / "later/customers/batch-3.jsonl", customers)
    write(ROOT / "later/orders/batch-3.jsonl", orders)


if __name__ == "__main__":
    main()
