//! Filtering and ordering ten thousand offers.

use std::collections::HashMap;
use std::time::Instant;

use gpuprov::cloud::runpod::capabilities;
use gpuprov::model::money::Usd;
use gpuprov::model::offer::Offer;
use gpuprov::model::offer_key::OfferKey;
use gpuprov::model::want::{Kind, Want};
use gpuprov::plan::filter::miss;
use gpuprov::plan::queue::Queue;

use crate::{Figure, median, ms};

const OFFERS: usize = 10_000;

pub fn run() -> Vec<Figure> {
    let many = offers(OFFERS);
    let few = offers(OFFERS / 10);
    let (many, few) = (time(&many), time(&few));
    vec![
        Figure::at_most(format!("filter, order and first 40 of {OFFERS} offers"), many, 50.0, " ms"),
        Figure::plain("of this, the filter", format!("{:.2} ms", filter(&offers(OFFERS)))),
        Figure::plain(
            "the same against a tenth of them, over ten (1 is linear)",
            format!("{:.2} x", many / few / 10.0),
        ),
    ]
}

fn filter(offers: &[Offer]) -> f64 {
    let want = Want::new(Kind::Gpus(vec!["RTX4090:1".parse().unwrap(), "L40S".parse().unwrap()]), 50);
    let capabilities = capabilities();
    let runs = (0..7).map(|_| {
        let start = Instant::now();
        let fits = offers.iter().filter(|offer| miss(offer, &want, &capabilities).is_none()).count();
        assert!(fits > 0);
        start.elapsed()
    });
    ms(median(runs.collect()))
}

fn time(offers: &[Offer]) -> f64 {
    let want = Want::new(Kind::Gpus(vec!["RTX4090:1".parse().unwrap(), "L40S".parse().unwrap()]), 50);
    let capabilities = capabilities();
    let runs = (0..7).map(|_| {
        let start = Instant::now();
        let fits = offers.iter().filter(|offer| miss(offer, &want, &capabilities).is_none());
        let mut queue = Queue::new(fits.cloned().collect(), HashMap::new());
        let mut last = Usd::ZERO;
        for _ in 0..40 {
            let next = queue.take_next().unwrap().price_per_hour;
            assert!(next >= last);
            last = next;
        }
        start.elapsed()
    });
    ms(median(runs.collect()))
}

fn offers(count: usize) -> Vec<Offer> {
    let models = ["NVIDIA GeForce RTX 4090", "NVIDIA L40S", "NVIDIA L40", "NVIDIA H100 80GB HBM3"];
    let one = |number: usize| {
        let key = OfferKey {
            account: "runpod/default".parse().unwrap(),
            instance_type: format!("{} x1 secure", models[number % models.len()]),
            gpu_count: 1,
            zone: Some(format!("EU-RO-{}", number % 97)),
            spot: false,
            disk_gb: 50,
            cuda: None,
            ram_gb: None,
            vcpus: None,
            // A fixed scatter, so that sorting has something to do.
            price: Usd::from_micros(100_000 + i64::try_from(number * 7919 % 900_001).unwrap()),
            own: None,
        };
        let mut offer = Offer::of_key(&key.encode(), &key);
        offer.gpu_raw = Some(models[number % models.len()].to_owned());
        offer.vram_gb = Some([24.0, 48.0, 48.0, 80.0][number % models.len()]);
        offer
    };
    (0..count).map(one).collect()
}
