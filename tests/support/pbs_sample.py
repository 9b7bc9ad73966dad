"""Accounting records as PBS writes them."""

ASKED = (
    'user=eve group=users account="phys 1" project=_pbs_project_default jobname=sim queue=workq ctime=1795325400 '
    "qtime=1795325400 etime=1795325410 Resource_List.mem=8gb Resource_List.ncpus=8 Resource_List.nodect=2 "
    "Resource_List.place=pack:excl Resource_List.walltime=01:00:00"
)


RAN = f"{ASKED} start=1795325480 exec_host=n1/0*4+n2/0*4"


LOG = f"""11/22/2026 05:30:00;Q;7.head;queue=workq
11/22/2026 05:31:20;S;7.head;{RAN}
11/22/2026 05:32:20;E;7.head;{RAN} session=9 end=1795325540 Exit_status=0 resources_used.walltime=00:00:55 run_count=1
11/22/2026 05:40:00;L;license;floating license hour:3 day:3 month:3 max:10
11/22/2026 05:31:20;S;8[3].head;{RAN}
11/22/2026 05:31:30;D;8[3].head;requestor=root@head
11/22/2026 05:31:33;E;8[].head;{RAN} end=1795325493 Exit_status=0
11/22/2026 05:31:33;E;8[3].head;{RAN} end=1795325493 Exit_status=271 resources_used.walltime=00:00:13
11/22/2026 05:31:20;S;9.head;{RAN}
11/22/2026 05:31:30;R;9.head;{RAN} Exit_status=-11
11/22/2026 05:31:40;S;9.head;{RAN.replace("start=1795325480", "start=1795325500")}
11/22/2026 06:31:45;E;9.head;{RAN.replace("start=1795325480", "start=1795325500")} end=1795329105 Exit_status=-29
11/22/2026 05:30:00;Q;10.head;{ASKED}
11/22/2026 05:30:50;D;10.head;requestor=eve@head
11/22/2026 05:30:00;Q;11.head;queue=workq
11/22/2026 05:30:00;D;12.head;requestor=eve@head
"""
