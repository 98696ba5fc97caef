//! Reading both formats.

use proptest::prelude::*;

use super::*;

#[test]
fn a_machine_is_its_host_and_its_gpus() {
    let prices = skypilot(SAMPLE);
    for (ty, gpus, zone, spot, expected) in [
        ("g2-standard-4", 1, "us-central1-a", false, 706_830),
        ("a2-highgpu-1g", 1, "us-west1-b", true, 1_803_850),
        // With 750 GiB of local SSD.
        ("a3-highgpu-1g", 1, "us-east4-a", true, 2_505_560 + 32_877),
        // The cards carry the price of the whole machine.
        ("a4-highgpu-8g", 8, "us-central1-b", true, 32_606_400),
        ("n1-standard-8", 1, "europe-west1-b", false, 768_010),
        ("n2-standard-8", 0, "us-east4-a", false, 437_510),
        ("e2-standard-8", 0, "us-central1-a", true, 117_600),
    ] {
        assert_eq!(micros(&prices, ty, gpus, zone, spot), Some((expected, false)), "{ty} {zone}");
    }
    assert_eq!(answer(&prices, "g2-standard-4", 1, "us-east4-b", false), Answer::NotSold);
    assert_eq!(answer(&prices, "n2d-standard-8", 0, "us-east4-a", false), Answer::NotSold);
}

#[test]
fn rows_of_whole_machines_are_taken_as_they_are() {
    let prices = gpuhunt(&[
        "g2-standard-4,us-central1-a,0.706832,4,16.0,1,L4,24.0,False,,nvidia,,x86,\"{\"\"is_dws_calendar_mode\"\": false}\"",
        "a4-highgpu-8g,us-central1-b,32.6064,224,3968.0,8,B200,180.0,True,,nvidia,gcp-a4,x86,\"{\"\"is_dws_calendar_mode\"\": false}\"",
        "n2-standard-8,us-east4-a,0.437511,8,32.0,0,,,False,,,,x86,\"{\"\"is_dws_calendar_mode\"\": false}\"",
        "n1-standard-8,europe-west1-b,0.768014,8,30.0,1,T4,16.0,False,,nvidia,,x86,",
        &hunted_row("a3-highgpu-1g", 1, "us-east4-a", true, 2.505_56),
        &hunted_row("a3-highgpu-8g", 8, "us-east4-a", true, 20.5),
        &hunted_row("a2-ultragpu-1g", 1, "us-central1-a", true, 2.52),
    ]);
    for (ty, gpus, zone, spot, expected) in [
        ("g2-standard-4", 1, "us-central1-a", false, 706_832),
        ("a4-highgpu-8g", 8, "us-central1-b", true, 32_606_400),
        ("n2-standard-8", 0, "us-east4-a", false, 437_511),
        ("n1-standard-8", 1, "europe-west1-b", false, 768_014),
        // The small a3 types are short of their local SSD there.
        ("a3-highgpu-1g", 1, "us-east4-a", true, 2_505_560 + 32_877),
        ("a3-highgpu-8g", 8, "us-east4-a", true, 20_500_000),
        ("a2-ultragpu-1g", 1, "us-central1-a", true, 2_520_000),
    ] {
        assert_eq!(micros(&prices, ty, gpus, zone, spot), Some((expected, false)), "{ty} {zone}");
    }
}

#[test]
fn what_is_not_ours_to_buy_is_dropped() {
    let booked = |flags: &str, data: &str| {
        format!("g2-standard-4,us-central1-a,0.3,4,16.0,1,L4,24.0,False,,nvidia,{flags},x86,{data}")
    };
    let good = hunted_row("g2-standard-4", 1, "us-central1-a", false, 0.706_832);
    for odd in [
        booked("gcp-dws-calendar-mode", ""),
        booked("gcp-a4 gcp-dws-calendar-mode", "\"{\"\"is_dws_calendar_mode\"\": false}\""),
        booked("", "\"{\"\"is_dws_calendar_mode\"\": true}\""),
        booked("", "\"{\"\"is_dws_calendar_mode\"\": 1}\""),
        booked("", "{'is_dws_calendar_mode': True}"),
        // Another card, another machine, no price, no zone, no kind.
        good.replace("L4,24.0", "L40S,48.0"),
        good.replace("0.706832,4,16.0", "9,8,16.0"),
        good.replace("0.706832", "0"),
        good.replace("0.706832", "-9"),
        good.replace("0.706832", "NaN"),
        good.replace("0.706832", "inf"),
        good.replace("0.706832", "1e300"),
        good.replace("0.706832", "20000"),
        good.replace("us-central1-a", "us-central1"),
        good.replace("us-central1-a", "../x"),
        good.replace("False", "maybe"),
        good.replace("g2-standard-4", "a3-megagpu-8g"),
    ] {
        let both = gpuhunt(&[&good, &odd]);
        assert_eq!(
            micros(&both, "g2-standard-4", 1, "us-central1-a", false),
            Some((706_832, false)),
            "{odd}"
        );
        let alone = gpuhunt(&[&odd]);
        assert_eq!(answer(&alone, "g2-standard-4", 1, "us-central1-a", false), Answer::NotSold, "{odd}");
    }
}

#[test]
fn of_two_prices_for_one_machine_the_higher_counts() {
    for order in [[0.706_832, 0.9], [0.9, 0.706_832]] {
        let rows = order.map(|price| hunted_row("g2-standard-4", 1, "us-central1-a", false, price));
        let prices = gpuhunt(&[&rows[0], &rows[1]]);
        assert_eq!(micros(&prices, "g2-standard-4", 1, "us-central1-a", false), Some((900_000, false)));
    }
    let twice = format!("{SAMPLE}n2-standard-8,8.0,32.0,,,,us-east4,us-east4-a,0.1,0.01\n");
    assert_eq!(micros(&skypilot(&twice), "n2-standard-8", 0, "us-east4-a", false), Some((437_510, false)));
}

#[test]
fn columns_are_known_by_their_names() {
    let row = hunted_row("g2-standard-4", 1, "us-central1-a", false, 0.706_832);
    let parse = |header: &str| super::super::gpuhunt::parse(format!("{header}\n{row}\n").as_bytes());
    assert_eq!(parse(HUNT_HEADER).unwrap().len(), 1);
    let more = format!("{HUNT_HEADER},note\n{row},x\n");
    assert_eq!(super::super::gpuhunt::parse(more.as_bytes()).unwrap().len(), 1);
    for wrong in [
        HUNT_HEADER.replace("price", "cost"),
        HUNT_HEADER.replace("disk_size", "price"),
        HUNT_HEADER.replace("gpu_count,gpu_name", "gpu_name,gpus"),
        "<html>".to_owned(),
        String::new(),
    ] {
        assert!(parse(&wrong).is_err(), "{wrong}");
    }
    let swapped = SAMPLE.replacen("Price,SpotPrice", "SpotPrice,Price", 1);
    let prices = skypilot(&swapped);
    assert_eq!(micros(&prices, "n2-standard-8", 0, "us-east4-a", true), Some((437_510, false)));
}

#[test]
fn a_file_whose_rows_do_not_fit_is_none() {
    let short: Vec<String> = (0..20).map(|at| format!("n2-standard-8,{at}")).collect();
    let short: Vec<&str> = short.iter().map(String::as_str).collect();
    assert!(super::super::gpuhunt::parse(hunted(&short).as_bytes()).is_err());
    let cut = &SAMPLE[..SAMPLE.len() - 30];
    assert!(super::super::skypilot::parse(cut.as_bytes()).is_ok(), "a last row that was cut hides no other");
    let row = hunted_row("g2-standard-4", 1, "us-central1-a", false, 0.706_832);
    let within = format!("{HUNT_HEADER}\n{row}\nn2-standard-8,us-east4-a,0.43");
    assert_eq!(super::super::gpuhunt::parse(within.as_bytes()).unwrap().len(), 1);
    let last = SAMPLE.trim_end();
    let table = |text: &str| super::super::skypilot::parse(text.as_bytes()).unwrap().len();
    assert!(table(last) < table(SAMPLE), "nobody knows whether it is whole");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}", lines in proptest::collection::vec("[-a-z0-9,.\"{}\\n ]{0,60}", 0..12)) {
        let body = format!("{HUNT_HEADER}\n{}", lines.join("\n"));
        for text in [text, body, SAMPLE.lines().next().unwrap().to_owned() + "\n" + &lines.join("\n")] {
            for table in [super::super::gpuhunt::parse(text.as_bytes()), super::super::skypilot::parse(text.as_bytes())] {
                prop_assert!(table.is_err() || table.unwrap().len() == 0);
            }
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut text = format!("{HUNT_HEADER}\n").into_bytes();
        text.extend(&bytes);
        let _ = super::super::gpuhunt::parse(&text);
        let _ = super::super::skypilot::parse(&bytes);
    }

    #[test]
    fn one_odd_field_makes_no_other_machine_cheaper(
        line in 1_usize..523, field in 0_usize..10,
        odd in prop_oneof![Just(String::new()), "-?[0-9]{1,40}", Just("1e-9".to_owned()), Just("0.000001".to_owned()), Just("\"".to_owned()), Just("a,b".to_owned()), "[0-9.eE-]{1,12}"],
    ) {
        let mut lines: Vec<String> = SAMPLE.lines().map(str::to_owned).collect();
        let mut cells: Vec<&str> = lines[line].split(',').collect();
        if cells.len() != 10 { return Ok(()); }
        cells[field] = &odd;
        let touched = lines[line].split(',').nth(7).unwrap().to_owned();
        lines[line] = cells.join(",");
        let Ok(table) = super::super::skypilot::parse((lines.join("\n") + "\n").as_bytes()) else { return Ok(()) };
        let (good, now) = (skypilot(SAMPLE), prices(Which::Skypilot, table));
        for shape in crate::cloud::gcp::shapes::shapes() {
            for zone in crate::cloud::gcp::places::DEFAULT_ZONES {
                for spot in [false, true] {
                    if let Answer::Price(price) = now.of(shape, zone, spot) {
                        prop_assert!(price.compute.is_positive());
                        // In other zones nothing gets cheaper; in its own never below what the guard lets through.
                        if let Answer::Price(before) = good.of(shape, zone, spot) {
                            prop_assert!(zone == touched || price.compute >= before.compute, "{} {zone}", shape.machine_type);
                            let floor = if spot { 8 } else { 2 };
                            prop_assert!(price.compute.times(floor) >= before.compute, "{} {zone} {spot} {} {}", shape.machine_type, price.compute, before.compute);
                        }
                    }
                }
            }
        }
    }
}
